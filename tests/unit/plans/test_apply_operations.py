"""Operations change a draft all together or not at all."""

import random
from typing import Any

import pytest

from fermata.plans.apply_operations import PlanFailed
from fermata.plans.operations import OPERATION_CLASSES, PLAN_OPERATIONS
from fermata.plans.page_model import SiteDraft
from tests.unit.plans.page_samples import SITE, apply, list_block_ids, read_props

CTA = {"id": "b_new", "type": "CTA", "props": {"title": "New"}}


def on_home(op: str, **members: Any) -> dict[str, Any]:
    return {"op": op, "pageSlug": "/", **members}


def on_list(op: str, **members: Any) -> dict[str, Any]:
    return {"op": op, "pageSlug": "/faq", "blockId": "b_faq", "listKey": "items", **members}


def test_there_are_sixteen_operations() -> None:
    assert len(OPERATION_CLASSES) == 16


def test_a_new_block_stands_before_the_footer_or_behind_its_anchor() -> None:
    assert list_block_ids(apply(on_home("add_block", block=CTA)).draft, "/")[-2:] == ["b_new", "b_footer"]
    anchored = apply(on_home("add_block", block=CTA, afterBlockId="b_hero")).draft
    assert list_block_ids(anchored, "/")[1:3] == ["b_hero", "b_new"]


def test_a_block_moves_to_the_top_below_the_header() -> None:
    assert list_block_ids(apply(on_home("move_block", blockId="b_cta")).draft, "/")[:3] == [
        "b_header",
        "b_cta",
        "b_hero",
    ]


def test_props_are_merged_and_null_removes_one() -> None:
    draft = apply(on_home("update_props", blockId="b_hero", patch={"heading": "Hi", "ctaHref": None})).draft
    assert read_props(draft, "/", "b_hero") == {"heading": "Hi"}


def test_a_copy_of_a_block_follows_its_original_or_goes_to_another_page() -> None:
    assert list_block_ids(apply(on_home("duplicate_block", blockId="b_hero")).draft, "/")[1:3] == [
        "b_hero",
        "b_hero_copy",
    ]
    moved = apply(on_home("duplicate_block", blockId="b_hero", toPageSlug="/pricing", newBlockId="b_x")).draft
    assert list_block_ids(moved, "/pricing") == ["b_x"]


@pytest.mark.parametrize(
    ("operation", "questions"),
    [
        (on_list("add_item", item={"q": "n"}), ["q1", "q2", "n"]),
        (on_list("add_item", item={"q": "n"}, afterIndex=0), ["q1", "n", "q2"]),
        (on_list("add_item", item={"q": "n"}, afterIndex=-1), ["n", "q1", "q2"]),
        (on_list("update_item", index=1, patch={"q": "n"}), ["q1", "n"]),
        (on_list("remove_item", index=0), ["q2"]),
        (on_list("move_item", index=1), ["q2", "q1"]),
        (on_list("move_item", index=0, afterIndex=1), ["q2", "q1"]),
    ],
)
def test_items_are_added_changed_removed_and_moved(operation: dict[str, Any], questions: list[str]) -> None:
    items = read_props(apply(operation).draft, "/faq", "b_faq")["items"]
    assert [item["q"] for item in items] == questions


def test_links_follow_a_page_that_is_renamed() -> None:
    draft = apply({"op": "rename_page", "pageSlug": "/pricing", "newPageSlug": "/prices"}).draft
    assert draft.slugs == ("/", "/faq", "/prices")
    assert read_props(draft, "/", "b_hero")["ctaHref"] == "/prices"
    assert read_props(draft, "/faq", "b_text")["body"] == "See [prices](/prices) and /pricing."
    assert read_props(draft, "/", "b_cta")["ctaHref"] == "/faq?x=1"


def test_pages_are_created_copied_moved_and_removed_and_home_stays_first() -> None:
    page = {"id": "p_a", "slug": "/a", "title": "A", "blocks": []}
    assert apply({"op": "create_page", "page": page}).draft.slugs[-1] == "/a"
    assert apply({"op": "duplicate_page", "pageSlug": "/faq"}).draft.slugs == ("/", "/faq", "/faq-copy", "/pricing")
    assert apply({"op": "move_page", "pageSlug": "/pricing"}).draft.slugs == ("/", "/pricing", "/faq")
    assert apply({"op": "remove_page", "pageSlug": "/faq"}).draft.slugs == ("/", "/pricing")


def test_meta_and_settings_of_the_site_are_merged() -> None:
    meta = {"op": "update_page_meta", "pageSlug": "/faq", "patch": {"title": "FAQ", "description": "All answers"}}
    labels = [{"op": "update_site_config", "patch": {"navLabels": {slug: "x"}}} for slug in ("/a", "/b")]
    draft = apply(meta, *labels).draft
    page = draft.find_page("/faq")
    assert page
    assert page.meta
    assert (page.title, page.meta.description) == ("FAQ", "All answers")
    assert draft.config.nav_labels == {"/a": "x", "/b": "x"}


REFUSED = [
    (on_home("remove_block", blockId="b_none"), "not_found"),
    (on_home("remove_block", blockId="b_header"), "operation_failed"),
    (on_home("move_block", blockId="b_footer"), "operation_failed"),
    (on_home("duplicate_block", blockId="b_footer"), "operation_failed"),
    (on_home("add_block", block={"id": "h", "type": "header"}), "operation_failed"),
    (on_home("add_block", block={**CTA, "id": "b_hero"}), "schema_violation"),
    (on_home("add_block", block=CTA, afterBlockId="b_none"), "not_found"),
    (on_home("update_props", blockId="b_hero", patch={"heading": "Welcome"}), "no_effective_change"),
    (on_list("remove_item", index=2), "not_found"),
    ({**on_list("remove_item", index=0), "listKey": "cards"}, "not_found"),
    ({"op": "remove_page", "pageSlug": "/"}, "operation_failed"),
    ({"op": "move_page", "pageSlug": "/"}, "operation_failed"),
    ({"op": "rename_page", "pageSlug": "/", "newPageSlug": "/x"}, "operation_failed"),
    ({"op": "rename_page", "pageSlug": "/faq", "newPageSlug": "/pricing"}, "schema_violation"),
    ({"op": "create_page", "page": {"id": "p", "slug": "/faq", "title": "F"}}, "schema_violation"),
    ({"op": "remove_page", "pageSlug": "/none"}, "not_found"),
]


@pytest.mark.parametrize(("operation", "category"), REFUSED)
def test_a_refused_operation_leaves_nothing_of_the_plan(operation: dict[str, Any], category: str) -> None:
    before = SITE.to_wire()
    others = (
        [] if category == "no_effective_change" else [on_home("update_props", blockId="b_cta", patch={"title": "X"})]
    )
    with pytest.raises(PlanFailed) as failed:
        apply(*others, operation)
    assert failed.value.category == category
    assert failed.value.applied_count == len(others)
    assert SITE.to_wire() == before


def test_the_last_page_cannot_be_removed() -> None:
    alone = SiteDraft(pages=tuple(page for page in SITE.pages if page.slug == "/faq"))
    with pytest.raises(PlanFailed, match="last page"):
        apply({"op": "remove_page", "pageSlug": "/faq"}, draft=alone)


def test_an_operation_without_effect_is_skipped_beside_one_with_effect() -> None:
    same = on_home("update_props", blockId="b_hero", patch={"heading": "Welcome"})
    outcomes = apply(same, on_home("remove_block", blockId="b_cta")).outcomes
    assert [(outcome.index, outcome.skipped) for outcome in outcomes] == [(1, "unchanged_value"), (2, None)]


def test_random_operations_keep_a_site_whole() -> None:
    """Whatever is applied: slugs and the ids of a page's blocks stay unique, home stays first, the rest is refused."""
    chance = random.Random(7)
    draft, applied = SITE, 0
    for number in range(600):
        try:
            draft = apply(make_random_operation(chance, draft, number), draft=draft).draft
        except PlanFailed:
            continue
        applied += 1
        assert draft.slugs[0] == "/"
        assert len(set(draft.slugs)) == len(draft.slugs)
        assert all(len(set(ids)) == len(ids) for ids in (list_block_ids(draft, slug) for slug in draft.slugs))
        assert SiteDraft.from_wire(draft.to_wire()) == draft
    assert applied > 200


def make_random_operation(chance: random.Random, draft: SiteDraft, number: int) -> dict[str, Any]:
    slug, other = chance.choice(draft.slugs), chance.choice([*draft.slugs, f"/new-{number % 7}"])
    block = chance.choice([*list_block_ids(draft, slug), "b_none"])
    values: dict[str, Any] = {
        "op": chance.choice([name for name in OPERATION_CLASSES if name != "remove_page" or len(draft.slugs) > 3]),
        "pageSlug": slug,
        "newPageSlug": other,
        "toPageSlug": chance.choice(draft.slugs),
        "afterPageSlug": chance.choice([*draft.slugs, None]),
        "blockId": block,
        "block": {"id": f"b_{number}", "type": "FAQAccordion", "props": {"items": []}},
        "listKey": "items",
        "item": {"q": str(number)},
        "index": chance.randrange(3),
        "patch": {"title": str(number)},
        "page": {"id": f"p_{number}", "slug": other, "title": "T", "blocks": []},
    }
    one = OPERATION_CLASSES[values["op"]]
    members = {field.alias or name for name, field in one.model_fields.items()}
    operation = {name: value for name, value in values.items() if name in members and value is not None}
    PLAN_OPERATIONS.validate_python([operation])
    return operation
