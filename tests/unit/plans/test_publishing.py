"""A draft is published as an edition, once for each of its versions, and older editions are kept for a while."""

from typing import Any

import pytest

from fermata.aws.resources import Resources
from fermata.domain.errors import Conflict, NotFound
from fermata.plans.apply_plan import apply_submitted_operations
from fermata.plans.drafts.draft_history import import_pages
from fermata.plans.drafts.draft_rows import DraftLocation
from fermata.plans.drafts.publishing import (
    MAX_KEPT_EDITIONS,
    compare_with_published,
    list_publish_log,
    load_published,
    publish_draft,
    read_edition,
    read_kept_edition,
    site_partition,
)
from tests.unit.plans.page_samples import SITE
from tests.unit.resource_fixtures import clock, resources, shared_resources

__all__ = ["clock", "resources", "shared_resources"]
HERE, THERE = DraftLocation("acme", "c1"), DraftLocation("acme", "c2")


@pytest.fixture
def site(resources: Resources) -> Resources:
    for location in (HERE, THERE):
        import_pages(resources, location, SITE.pages, overwrite=False)
    return resources


def rename(resources: Resources, title: str, location: DraftLocation = HERE) -> None:
    operation = {"op": "update_page_meta", "pageSlug": "/faq", "patch": {"title": title}}
    apply_submitted_operations(resources, location, [operation], title)


def read_title(resources: Resources) -> str:
    published = load_published(resources, "acme", "shop")
    pages = {page.slug: page for page in read_edition(resources, published, published.edition)}
    return pages["/faq"].title


def test_what_publishing_changes_is_known_before_and_listed_after(site: Resources) -> None:
    assert compare_with_published(site, HERE, "shop").added == ["/", "/faq", "/pricing"]
    publish_draft(site, HERE, "shop")
    rename(site, "Answers")
    apply_submitted_operations(site, HERE, [{"op": "remove_page", "pageSlug": "/pricing"}], "r")
    difference = compare_with_published(site, HERE, "shop")
    assert (difference.changed, difference.removed) == (["/faq"], ["/pricing"])
    publish_draft(site, HERE, "shop")
    assert [entry["number"] for entry in list_publish_log(site, "acme", "shop", 10)] == [2, 1]
    assert read_title(site) == "Answers"
    assert not any(vars(compare_with_published(site, HERE, "shop")).values())


def test_the_same_version_is_published_once(site: Resources) -> None:
    assert publish_draft(site, HERE, "shop") == publish_draft(site, HERE, "shop")
    assert load_published(site, "acme", "shop").number == 1


def test_of_two_who_publish_at_once_both_are_in_the_log(site: Resources, monkeypatch: pytest.MonkeyPatch) -> None:
    rename(site, "Mine")
    rename(site, "Theirs", THERE)
    write = site.tables.write_items
    raced: list[Any] = []

    def write_later(*writes: Any) -> None:
        if len(writes) == 2 and not raced:
            raced.append(True)
            publish_draft(site, THERE, "shop")
        write(*writes)

    monkeypatch.setattr(site.tables, "write_items", write_later)
    assert publish_draft(site, HERE, "shop")["number"] == 2
    assert len(list_publish_log(site, "acme", "shop", 10)) == 2
    assert read_title(site) == "Mine"


def test_older_editions_are_kept_for_a_while_and_then_deleted(site: Resources) -> None:
    for number in range(MAX_KEPT_EDITIONS + 3):
        rename(site, f"T{number}")
        publish_draft(site, HERE, "shop")
    kept = load_published(site, "acme", "shop").kept
    assert [one["number"] for one in kept] == list(range(MAX_KEPT_EDITIONS + 3, 3, -1))
    titles = {page.slug: page.title for page in read_kept_edition(site, "acme", "shop", 4)}
    assert titles["/faq"] == "T3"
    with pytest.raises(NotFound):
        read_kept_edition(site, "acme", "shop", 3)
    rows = site.tables.query_items(site.settings.conversations_table, site_partition("acme", "shop"))
    assert len([row for row in rows if row["sk"].startswith("p#page#")]) == MAX_KEPT_EDITIONS * len(SITE.pages)


def test_an_empty_draft_is_not_published(resources: Resources) -> None:
    with pytest.raises(Conflict):
        publish_draft(resources, HERE, "shop")
