"""A plan that touches several pages, or empties one, is held by whatever names it calls them."""

from typing import Any

import pytest

from fermata.plans.destructive_gate import find_destructive_reasons
from fermata.plans.operations import PLAN_OPERATIONS
from tests.unit.plans.page_samples import SITE, apply

COUNTS = {page.slug: len(page.blocks) for page in SITE.pages} | {"/faq-copy": 1}
RENAMED = {"op": "rename_page", "pageSlug": "/faq", "newPageSlug": "/questions"}
BACK = {"op": "rename_page", "pageSlug": "/questions", "newPageSlug": "/faq"}
AT_THE_OLD_SLUG = {"op": "create_page", "page": {"id": "p", "slug": "/faq", "title": "Other", "blocks": []}}


def remove_block(slug: str, block: str) -> dict[str, Any]:
    return {"op": "remove_block", "pageSlug": slug, "blockId": block}


def set_title(slug: str) -> dict[str, Any]:
    return {"op": "update_page_meta", "pageSlug": slug, "patch": {"title": "New"}}


def copy_page(slug: str) -> dict[str, Any]:
    return {"op": "duplicate_page", "pageSlug": slug}


@pytest.mark.parametrize(
    ("operations", "reasons"),
    [
        ([RENAMED, remove_block("/questions", "b_faq"), remove_block("/questions", "b_text")], ["majority_page_wipe"]),
        ([remove_block("/faq", "b_faq"), RENAMED, remove_block("/questions", "b_text")], ["majority_page_wipe"]),
        ([RENAMED, AT_THE_OLD_SLUG], ["multi_page_plan"]),
        ([RENAMED, BACK, set_title("/faq")], []),
        ([copy_page("/"), set_title("/home-copy")], []),
        ([copy_page("/faq"), set_title("/faq-copy_2")], []),
        ([copy_page("/faq"), set_title("/faq-copy")], ["multi_page_plan"]),
        ([copy_page("/faq"), copy_page("/faq")], ["multi_page_plan"]),
    ],
)
def test_pages_are_counted_by_what_they_are(operations: list[Any], reasons: list[str]) -> None:
    found = find_destructive_reasons(PLAN_OPERATIONS.validate_python(operations), COUNTS)
    assert [reason.kind for reason in found] == reasons


@pytest.mark.parametrize(
    ("operations", "messages"),
    [
        ([RENAMED, {"op": "remove_page", "pageSlug": "/questions"}], ["Delete page /faq with 2 blocks."]),
        (
            [{"op": "remove_page", "pageSlug": "/faq"}, AT_THE_OLD_SLUG, remove_block("/faq", "b_faq")],
            ["Delete page /faq with 2 blocks.", "Change 2 pages in one step: /faq, /faq (new)."],
        ),
    ],
)
def test_whoever_decides_reads_which_page_goes_and_how_much_of_it(operations: list[Any], messages: list[str]) -> None:
    found = find_destructive_reasons(PLAN_OPERATIONS.validate_python(operations), COUNTS)
    assert [reason.message for reason in found] == messages


def test_an_outcome_names_the_slug_that_a_copy_or_a_renamed_page_has() -> None:
    applied = apply(copy_page("/"), copy_page("/faq"), copy_page("/faq"), RENAMED, set_title("/pricing"))
    slugs = [outcome.updated_slug for outcome in applied.outcomes]
    assert slugs == ["/home-copy", "/faq-copy", "/faq-copy_2", "/questions", "/pricing"]
