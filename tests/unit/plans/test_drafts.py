"""A draft is changed once by each request, keeps its history, and loses what nothing leads to."""

import json
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from fermata.aws.clock import new_id
from fermata.aws.resources import Resources
from fermata.conversations.message_store import conversation_partition
from fermata.domain.errors import Conflict, InvalidRequest, NotFound, PayloadTooLarge, TooManyRequests
from fermata.plans.apply_plan import apply_submitted_operations
from fermata.plans.drafts.draft_history import (
    get_history_status,
    import_pages,
    list_history,
    restore_version,
    step_page,
    undo_version,
)
from fermata.plans.drafts.draft_rows import LOG_LENGTH, MAX_UNDO_STEPS, DraftLocation
from fermata.plans.drafts.draft_store import MAX_CHANGED_PAGES, MAX_DRAFT_BYTES, MAX_DRAFT_PAGE_BYTES, load_draft
from fermata.plans.drafts.publishing import publish_draft
from fermata.plans.drafts.repeated_request import make_request_effect_key
from fermata.plans.edit_plan import InvalidPlan
from fermata.plans.page_model import Page
from tests.resources import TestClock
from tests.unit.plans.page_samples import SITE
from tests.unit.resource_fixtures import clock, resources, shared_resources

__all__ = ["clock", "resources", "shared_resources"]
HERE = DraftLocation("acme", "c1")


@pytest.fixture
def site(resources: Resources) -> Resources:
    import_pages(resources, HERE, SITE.pages, overwrite=False)
    return resources


def change(resources: Resources, *operations: dict[str, Any], key: str = "") -> int | None:
    return apply_submitted_operations(resources, HERE, operations, key or new_id()).preview_version


def set_heading(resources: Resources, heading: str, key: str = "") -> int | None:
    operation = {"op": "update_props", "pageSlug": "/", "blockId": "b_hero", "patch": {"heading": heading}}
    return change(resources, operation, key=key)


def read_heading(resources: Resources) -> str:
    page = load_draft(resources, HERE).draft.find_page("/")
    block = page.find_block("b_hero") if page else None
    assert block is not None
    heading: str = block.props["heading"]
    return heading


def list_sort_keys(resources: Resources, prefix: str) -> list[str]:
    table = resources.settings.conversations_table
    rows = resources.tables.query_items(table, conversation_partition("acme", "c1"))
    return [row["sk"] for row in rows if row["sk"].startswith(prefix)]


def test_a_draft_is_read_as_it_was_stored(site: Resources) -> None:
    stored = load_draft(site, HERE)
    assert stored.version == 1
    assert stored.draft == SITE


def test_a_draft_with_pages_is_imported_over_only_if_that_is_wanted(site: Resources) -> None:
    assert import_pages(site, HERE, SITE.pages[:1], overwrite=False) is None
    stored = import_pages(site, HERE, SITE.pages[:1], overwrite=True)
    assert stored is not None
    assert stored.draft.slugs == ("/",)


def test_a_large_site_is_imported_in_several_changes_that_are_gone_on_with(resources: Resources) -> None:
    pages = tuple(Page(id=f"p{n}", slug=f"/{n}" if n else "/", title=str(n)) for n in range(2 * MAX_CHANGED_PAGES + 3))
    stored = import_pages(resources, HERE, pages, overwrite=False)
    assert stored is not None
    assert stored.version == 3
    assert not stored.is_incomplete
    assert stored.draft.slugs == tuple(page.slug for page in pages)


def test_the_same_change_is_made_once(site: Resources) -> None:
    assert set_heading(site, "One", key="k") == set_heading(site, "One", key="k") == 2
    assert load_draft(site, HERE).version == 2


def test_a_change_is_decided_again_when_another_one_was_faster(
    site: Resources, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = site.tables.write_items
    raced: list[Any] = []

    def write_later(*writes: Any) -> None:
        if not raced:
            raced.append(True)
            change(site, {"op": "update_props", "pageSlug": "/", "blockId": "b_cta", "patch": {"title": "Other"}})
        write(*writes)

    monkeypatch.setattr(site.tables, "write_items", write_later)
    assert set_heading(site, "Mine") == 3
    page = load_draft(site, HERE).draft.find_page("/")
    assert page is not None
    assert [block.props.get("title") for block in page.blocks if block.type == "CTA"] == ["Other"]
    assert read_heading(site) == "Mine"


def test_steps_are_undone_and_redone_and_a_new_change_forgets_the_redos(site: Resources) -> None:
    set_heading(site, "One")
    set_heading(site, "Two")
    step_page(site, HERE, "/", "undo")
    assert read_heading(site) == "One"
    step_page(site, HERE, "/", "redo")
    assert read_heading(site) == "Two"
    step_page(site, HERE, "/", "undo")
    step_page(site, HERE, "/", "undo")
    assert read_heading(site) == "Welcome"
    assert get_history_status(load_draft(site, HERE), "/")["redoCount"] == 2
    set_heading(site, "Three")
    with pytest.raises(InvalidRequest, match="nothing to redo"):
        step_page(site, HERE, "/", "redo")


def test_a_repeated_undo_with_its_key_is_one_step(site: Resources) -> None:
    set_heading(site, "One")
    set_heading(site, "Two")
    for _ in range(3):
        step_page(site, HERE, "/", "undo", key="undo-1")
    assert read_heading(site) == "One"


def test_an_undo_of_a_page_in_a_draft_without_a_home_page_goes_to_a_page_that_is_there(
    resources: Resources,
) -> None:
    for name in ("team", "jobs"):
        change(resources, {"op": "create_page", "page": {"id": name, "slug": f"/{name}", "title": name, "blocks": []}})
    assert step_page(resources, HERE, "/jobs", "undo").outcome == {"navigateToSlug": "/team"}


def test_an_undo_removes_a_page_that_was_created_and_brings_back_one_that_was_removed(site: Resources) -> None:
    change(site, {"op": "create_page", "page": {"id": "p", "slug": "/new", "title": "New", "blocks": []}})
    change(site, {"op": "remove_page", "pageSlug": "/faq"})
    assert step_page(site, HERE, "/new", "undo").outcome == {"navigateToSlug": "/"}
    assert step_page(site, HERE, "/faq", "undo").outcome == {"navigateToSlug": "/faq"}
    draft = load_draft(site, HERE).draft
    assert sorted(draft.slugs) == ["/", "/faq", "/pricing"]
    assert draft.find_page("/faq") == SITE.find_page("/faq")
    step_page(site, HERE, "/faq", "redo")
    step_page(site, HERE, "/new", "redo")
    assert sorted(load_draft(site, HERE).draft.slugs) == ["/", "/new", "/pricing"]


def test_a_plan_is_undone_on_all_its_pages_unless_one_has_changed_since(site: Resources) -> None:
    both = (
        {"op": "update_props", "pageSlug": "/", "blockId": "b_hero", "patch": {"heading": "Both"}},
        {"op": "remove_block", "pageSlug": "/faq", "blockId": "b_text"},
    )
    version = change(site, *both)
    assert version is not None
    set_heading(site, "Later")
    before = load_draft(site, HERE).draft
    with pytest.raises(Conflict, match="has changed since version 2"):
        undo_version(site, HERE, version)
    assert load_draft(site, HERE).draft == before
    later = load_draft(site, HERE).version
    undo_version(site, HERE, later)
    with pytest.raises(Conflict):
        undo_version(site, HERE, later)


def test_a_plan_that_nothing_has_followed_is_undone_as_a_whole(site: Resources) -> None:
    version = change(site, {"op": "rename_page", "pageSlug": "/pricing", "newPageSlug": "/prices"})
    assert version is not None
    undo_version(site, HERE, version)
    assert {page.slug: page for page in load_draft(site, HERE).draft.pages} == {page.slug: page for page in SITE.pages}


def test_a_restored_version_is_a_change_that_can_be_undone(site: Resources) -> None:
    for heading in ("One", "Two", "Three"):
        set_heading(site, heading)
    change(site, {"op": "remove_page", "pageSlug": "/faq"})
    restore_version(site, HERE, 2)
    draft = load_draft(site, HERE).draft
    assert (read_heading(site), draft.slugs) == ("One", SITE.slugs)
    step_page(site, HERE, "/", "undo")
    assert read_heading(site) == "Three"


def test_what_has_changed_is_listed_newest_first(site: Resources) -> None:
    set_heading(site, "One")
    assert [(entry.version, entry.kind, entry.slugs) for entry in list_history(site, HERE, 10)] == [
        (2, "ops", ("/",)),
        (1, "bootstrap", ("/", "/faq", "/pricing")),
    ]


def test_a_version_that_is_not_kept_is_refused(site: Resources) -> None:
    for act in (partial(restore_version, site, HERE, 99), partial(undo_version, site, HERE, 99)):
        with pytest.raises(NotFound):
            act()


def test_the_rows_of_a_draft_are_bounded_however_often_it_changes(site: Resources, clock: TestClock) -> None:
    for number in range(LOG_LENGTH + MAX_UNDO_STEPS):
        set_heading(site, f"H{number}")
    assert len(list_sort_keys(site, "d#h#")) == LOG_LENGTH
    assert len(list_sort_keys(site, "d#s#")) <= LOG_LENGTH + 1
    stored = load_draft(site, HERE)
    assert len(stored.effects) == LOG_LENGTH
    assert get_history_status(stored, "/")["undoCount"] == MAX_UNDO_STEPS
    restore_version(site, HERE, stored.version - LOG_LENGTH + 1)
    for _ in range(MAX_UNDO_STEPS):
        step_page(site, HERE, "/", "undo")
    assert len(list_sort_keys(site, "d#p#")) == 3


def test_a_page_that_is_too_large_is_refused_in_words(site: Resources) -> None:
    with pytest.raises(PayloadTooLarge, match="Page / is larger"):
        set_heading(site, "x" * MAX_DRAFT_PAGE_BYTES)
    pages = [{"id": f"p{n}", "slug": f"/{n}", "title": "T", "blocks": []} for n in range(MAX_CHANGED_PAGES + 1)]
    with pytest.raises(PayloadTooLarge, match=f"at most {MAX_CHANGED_PAGES} pages"):
        change(site, *({"op": "create_page", "page": page} for page in pages))


def test_all_pages_together_fit_into_the_memory_of_a_round(resources: Resources) -> None:
    pages = [
        Page.from_wire({"id": f"p{number}", "slug": f"/{number}", "title": "x" * 140_000})
        for number in range(MAX_DRAFT_BYTES // 140_000 + 1)
    ]
    import_pages(resources, HERE, pages[:-1], overwrite=False)
    with pytest.raises(PayloadTooLarge, match="4 MB"):
        change(resources, {"op": "create_page", "page": pages[-1].to_wire()})
    assert change(resources, {"op": "update_page_meta", "pageSlug": "/0", "patch": {"title": "Short"}})
    assert change(resources, {"op": "create_page", "page": {**pages[-1].to_wire(), "title": "y" * 90_000}})


def test_what_a_change_stores_is_counted_before_it_is_stored(site: Resources) -> None:
    sizes: list[int] = []
    counted = replace(HERE, count_bytes=sizes.append)
    set_heading(site, "One")
    operation = {"op": "update_props", "pageSlug": "/", "blockId": "b_hero", "patch": {"heading": "Two" * 1000}}
    apply_submitted_operations(site, counted, [operation], new_id())
    step_page(site, counted, "/", "undo")
    publish_draft(site, counted, "shop")
    assert all(size > 3000 for size in sizes[:2])
    assert len(sizes) == 3

    def refuse(_size: int) -> None:
        raise TooManyRequests("You may store no more today.")

    version = load_draft(site, HERE).version
    refused = replace(HERE, count_bytes=refuse)
    for act in (
        partial(apply_submitted_operations, site, refused, [operation], new_id()),
        partial(restore_version, site, refused, version - 1),
        partial(publish_draft, site, refused, "other"),
    ):
        with pytest.raises(TooManyRequests):
            act()
    assert load_draft(site, HERE).version == version


def test_operations_that_fail_store_nothing(site: Resources) -> None:
    with pytest.raises(InvalidPlan):
        change(site, {"op": "remove_page", "pageSlug": "/faq"}, {"op": "remove_page", "pageSlug": "/"})
    assert load_draft(site, HERE).version == 1


def test_the_rows_are_plain_json_that_an_export_can_write(site: Resources) -> None:
    table = site.settings.conversations_table
    rows = site.tables.query_items(table, HERE.pk)
    assert json.dumps(rows)


def find_hero_link(resources: Resources) -> str:
    page = load_draft(resources, HERE).draft.find_page("/")
    assert page is not None
    return next(str(block.props["ctaHref"]) for block in page.blocks if block.id == "b_hero")


@pytest.mark.parametrize("undone", ["/prices", "/pricing"])
@pytest.mark.parametrize("redone", ["/prices", "/pricing"])
def test_a_step_over_a_rename_gives_the_page_its_other_slug(site: Resources, undone: str, redone: str) -> None:
    change(site, {"op": "rename_page", "pageSlug": "/pricing", "newPageSlug": "/prices"})
    slugs = load_draft(site, HERE).draft.slugs
    assert step_page(site, HERE, undone, "undo").outcome == {"navigateToSlug": "/pricing"}
    assert load_draft(site, HERE).draft.slugs == SITE.slugs
    assert find_hero_link(site) == "/pricing"
    assert step_page(site, HERE, redone, "redo").outcome == {"navigateToSlug": "/prices"}
    assert load_draft(site, HERE).draft.slugs == slugs
    assert find_hero_link(site) == "/prices"


def test_changes_after_a_rename_are_undone_before_it_and_not_under_the_old_slug(site: Resources) -> None:
    change(site, {"op": "rename_page", "pageSlug": "/faq", "newPageSlug": "/questions"})
    change(site, {"op": "update_page_meta", "pageSlug": "/questions", "patch": {"title": "Answers"}})
    with pytest.raises(Conflict, match="called /questions now"):
        step_page(site, HERE, "/faq", "undo")
    step_page(site, HERE, "/questions", "undo")
    step_page(site, HERE, "/questions", "undo")
    draft = load_draft(site, HERE).draft
    assert (draft.slugs, draft.find_page("/faq")) == (SITE.slugs, SITE.find_page("/faq"))


def rename(old_slug: str, new_slug: str) -> dict[str, Any]:
    return {"op": "rename_page", "pageSlug": old_slug, "newPageSlug": new_slug}


def list_pages(resources: Resources) -> list[tuple[str, str]]:
    return [(page.slug, page.id) for page in load_draft(resources, HERE).draft.pages]


def test_steps_over_a_chain_of_renames_go_back_one_by_one_and_forward_again(site: Resources) -> None:
    change(site, rename("/pricing", "/prices"))
    change(site, rename("/prices", "/plans"))
    after = list_pages(site)
    for _ in range(2):
        step_page(site, HERE, "/plans", "undo")
        step_page(site, HERE, "/prices", "undo")
        assert load_draft(site, HERE).draft.slugs == SITE.slugs
        assert find_hero_link(site) == "/pricing"
        step_page(site, HERE, "/pricing", "redo")
        step_page(site, HERE, "/prices", "redo")
        assert (list_pages(site), find_hero_link(site)) == (after, "/plans")


@pytest.mark.parametrize("slug", ["/faq", "/pricing"])
def test_a_step_over_a_swap_of_two_slugs_takes_both_pages(site: Resources, slug: str) -> None:
    before = list_pages(site)
    change(site, rename("/pricing", "/for-now"), rename("/faq", "/pricing"), rename("/for-now", "/faq"))
    after = list_pages(site)
    assert (sorted(before), find_hero_link(site)) != (sorted(after), "/pricing")
    step_page(site, HERE, slug, "undo")
    assert (list_pages(site), find_hero_link(site)) == (before, "/pricing")
    step_page(site, HERE, slug, "redo")
    assert (list_pages(site), find_hero_link(site)) == (after, "/faq")


NEW_AT_THE_OLD_SLUG = {"op": "create_page", "page": {"id": "p_new", "slug": "/faq", "title": "New", "blocks": []}}


@pytest.mark.parametrize("slug", ["/faq", "/questions"])
def test_a_step_over_a_rename_makes_room_for_the_page_under_its_old_slug(site: Resources, slug: str) -> None:
    change(site, rename("/faq", "/questions"), NEW_AT_THE_OLD_SLUG)
    step_page(site, HERE, slug, "undo")
    assert sorted(list_pages(site)) == sorted((page.slug, page.id) for page in SITE.pages)


def test_a_step_over_a_rename_does_not_take_the_place_of_a_page_that_came_later(site: Resources) -> None:
    change(site, rename("/faq", "/questions"))
    change(site, NEW_AT_THE_OLD_SLUG)
    before = list_pages(site)
    with pytest.raises(Conflict, match="would be called /faq"):
        step_page(site, HERE, "/questions", "undo")
    assert list_pages(site) == before
    step_page(site, HERE, "/faq", "undo")
    step_page(site, HERE, "/questions", "undo")
    assert list_pages(site) == [(page.slug, page.id) for page in SITE.pages]


def test_a_page_that_came_with_a_removed_one_of_its_slug_goes_back_to_its_own(site: Resources) -> None:
    change(site, {"op": "remove_page", "pageSlug": "/faq"}, rename("/pricing", "/faq"))
    step_page(site, HERE, "/faq", "undo")
    assert sorted(list_pages(site)) == sorted((page.slug, page.id) for page in SITE.pages)


@pytest.mark.parametrize(
    "slug", ["/faq/../x", "/./x", "/..", "/%2E./x", "//elsewhere.example/x", "/a\\b", "/a?b", "/a#b"]
)
def test_a_slug_to_which_no_link_leads_is_refused(site: Resources, slug: str) -> None:
    created = {"op": "create_page", "page": {"id": "p_new", "slug": slug, "title": "New", "blocks": []}}
    copied = {"op": "duplicate_page", "pageSlug": "/faq", "newPageSlug": slug}
    for operation in (created, rename("/faq", slug), copied):
        with pytest.raises(InvalidPlan, match="The slug /"):
            change(site, operation)
    assert load_draft(site, HERE).version == 1


def test_two_pages_that_came_and_went_in_one_change_are_two_pages(site: Resources) -> None:
    page = {"id": "p_new", "slug": "/new", "title": "New", "blocks": []}
    change(site, {"op": "remove_page", "pageSlug": "/faq"}, {"op": "create_page", "page": page})
    step_page(site, HERE, "/new", "undo")
    assert sorted(load_draft(site, HERE).draft.slugs) == ["/", "/pricing"]


def test_a_key_of_another_request_is_refused_and_not_answered_with_what_that_has_done(site: Resources) -> None:
    first, other = (make_request_effect_key("k", "/ops", body) for body in (b"1", b"2"))
    assert [set_heading(site, "One", first), set_heading(site, "One", first)] == [2, 2]
    with pytest.raises(Conflict, match="another request"):
        set_heading(site, "Two", other)
    assert set_heading(site, "Two", make_request_effect_key("k2", "/ops", b"2")) == 3
