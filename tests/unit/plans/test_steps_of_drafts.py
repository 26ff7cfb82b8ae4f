"""Undo, redo and restore bring back what was there: settings, order, pages; also beyond the versions that are kept."""

import random
from collections.abc import Callable
from typing import Any

import pytest

from fermata.aws.clock import new_id
from fermata.aws.resources import Resources
from fermata.domain.errors import ApiError, Conflict, InvalidRequest, NotFound
from fermata.plans.apply_plan import apply_submitted_operations
from fermata.plans.drafts import draft_store
from fermata.plans.drafts.draft_history import import_pages, restore_version, step_page, undo_version
from fermata.plans.drafts.draft_rows import DraftLocation
from fermata.plans.drafts.draft_store import load_draft
from fermata.plans.edit_plan import InvalidPlan
from fermata.plans.page_model import SiteDraft
from tests.unit.plans.page_samples import SITE
from tests.unit.resource_fixtures import clock, resources, shared_resources

__all__ = ["clock", "resources", "shared_resources"]
HERE = DraftLocation("acme", "c1")
KEPT_VERSIONS = 8
KEPT_STEPS = 5


@pytest.fixture
def site(resources: Resources) -> Resources:
    import_pages(resources, HERE, SITE.pages, overwrite=False)
    return resources


def change(resources: Resources, operation: str, slug: str = "", **members: Any) -> int:
    named = {"op": operation, **({"pageSlug": slug} if slug else {}), **members}
    version = apply_submitted_operations(resources, HERE, [named], new_id()).preview_version
    assert version is not None
    return version


def set_heading(resources: Resources, heading: str) -> int:
    return change(resources, "update_props", "/", blockId="b_hero", patch={"heading": heading})


def name_in_navigation(resources: Resources, label: str) -> int:
    return change(resources, "update_site_config", patch={"navLabels": {"/faq": label}})


def read(resources: Resources) -> SiteDraft:
    return load_draft(resources, HERE).draft


def list_pages(resources: Resources) -> list[tuple[str, str]]:
    return [(page.slug, page.id) for page in read(resources).pages]


@pytest.mark.parametrize(
    ("operation", "slug", "members"),
    [
        ("update_site_config", "", {"patch": {"navLabels": {"/faq": "Questions"}}}),
        ("move_page", "/pricing", {"afterPageSlug": "/"}),
        ("remove_page", "/faq", {}),
    ],
)
def test_settings_and_the_order_of_pages_are_undone_with_their_version(
    site: Resources, operation: str, slug: str, members: dict[str, Any]
) -> None:
    before = read(site)
    version = change(site, operation, slug, **members)
    after = read(site)
    undone = undo_version(site, HERE, version).version
    assert read(site) == before != after
    undo_version(site, HERE, undone)
    assert read(site) == after


def test_settings_that_have_changed_since_are_not_undone(site: Resources) -> None:
    version = name_in_navigation(site, "Questions")
    name_in_navigation(site, "Answers")
    with pytest.raises(Conflict, match="settings of the site have changed since version 2"):
        undo_version(site, HERE, version)


def test_a_restore_of_what_is_there_leaves_nothing_to_undo(site: Resources) -> None:
    restored = restore_version(site, HERE, load_draft(site, HERE).version).version
    with pytest.raises(InvalidRequest, match="nothing to undo"):
        undo_version(site, HERE, restored)


def test_a_restore_is_undone_with_the_settings_and_comes_back(site: Resources) -> None:
    first = load_draft(site, HERE)
    set_heading(site, "Two")
    name_in_navigation(site, "Questions")
    change(site, "remove_page", "/pricing")
    before = read(site)
    restored = restore_version(site, HERE, first.version).version
    assert read(site) == first.draft
    undone = undo_version(site, HERE, restored).version
    assert read(site) == before
    undo_version(site, HERE, undone)
    assert read(site) == first.draft


def test_who_undoes_an_undo_gets_back_what_it_has_taken(site: Resources) -> None:
    for heading in ("One", "Two"):
        set_heading(site, heading)
    before = read(site)
    undone = step_page(site, HERE, "/", "undo").version
    undo_version(site, HERE, undone)
    assert read(site) == before


def test_a_page_does_not_come_back_under_a_slug_that_it_has_left_twice(site: Resources) -> None:
    change(site, "rename_page", "/faq", newPageSlug="/questions")
    step_page(site, HERE, "/faq", "undo")
    step_page(site, HERE, "/faq", "redo")
    change(site, "rename_page", "/questions", newPageSlug="/answers")
    with pytest.raises(Conflict, match="called /answers now"):
        step_page(site, HERE, "/faq", "undo")


@pytest.mark.parametrize(
    "members", [("create_page", ""), ("duplicate_page", "/pricing")], ids=lambda members: str(members[0])
)
def test_a_new_page_does_not_get_the_id_of_one_that_was_renamed(site: Resources, members: tuple[str, str]) -> None:
    operation, slug = members
    change(site, "rename_page", "/faq", newPageSlug="/questions")
    new = {"newPageSlug": "/faq"} if slug else {"page": {"id": "p_faq", "slug": "/faq", "title": "New", "blocks": []}}
    change(site, operation, slug, **new)
    ids = dict(list_pages(site))
    assert (ids["/questions"], ids["/faq"]) == ("p_faq", "p_faq_2")


def draw_step(
    chance: random.Random, resources: Resources, versions: dict[int, SiteDraft]
) -> tuple[Callable[[], object], SiteDraft | None]:
    """Return what a person may do next, with what the draft has to be afterwards, if that is known."""
    stored = load_draft(resources, HERE)
    slug, other = chance.choice(stored.draft.slugs), chance.choice(list(stored.stored_pages))
    new_slug, version = f"/p{chance.randrange(4)}", chance.choice(list(versions)[-KEPT_VERSIONS:])
    title = f"{slug} {stored.version}"
    return chance.choice(
        [
            (lambda: change(resources, "update_page_meta", slug, patch={"title": title}), None),
            (lambda: change(resources, "update_site_config", patch={"navLabels": {slug: title}}), None),
            (lambda: change(resources, "move_page", slug), None),
            (lambda: change(resources, "duplicate_page", slug, newPageSlug=new_slug), None),
            (lambda: change(resources, "rename_page", slug, newPageSlug=new_slug), None),
            (lambda: change(resources, "remove_page", slug), None),
            (lambda: restore_version(resources, HERE, version), versions[version]),
            (lambda: step_page(resources, HERE, other, "undo"), None),
            (lambda: step_page(resources, HERE, other, "redo"), None),
            (lambda: undo_version(resources, HERE, stored.version), versions.get(stored.version - 1)),
        ]
    )


@pytest.mark.parametrize("seed", range(4))
def test_steps_beyond_the_kept_versions_bring_back_what_was_there_and_no_page_twice(
    site: Resources, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(draft_store, "LOG_LENGTH", KEPT_VERSIONS)
    monkeypatch.setattr(draft_store, "MAX_UNDO_STEPS", KEPT_STEPS)
    versions = {1: read(site)}
    chance = random.Random(seed)
    while len(versions) < 4 * KEPT_VERSIONS:
        act, wanted = draw_step(chance, site, versions)
        try:
            act()
        except NotFound:
            assert wanted is None, "each of the newest versions can be restored"
        except (ApiError, InvalidPlan):
            continue
        else:
            assert wanted is None or read(site) == wanted
        stored = load_draft(site, HERE)
        versions[stored.version] = stored.draft
        ids = [page.id for page in stored.draft.pages]
        assert len(set(ids)) == len(ids), "a page is there once"
