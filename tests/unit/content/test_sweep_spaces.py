"""A space is looked at once a day: stale change sets, dead commits, files of images that nobody has any more."""

from datetime import datetime
from typing import Any

import pytest

from fermata.aws.dynamodb_items_and_writes import Update
from fermata.aws.resources import Resources
from fermata.content.change_sets.change_set_documents import change_in_change_set
from fermata.content.change_sets.change_set_store import begin_change_set, list_change_sets
from fermata.content.change_sets.merge_change_set import merge_change_set
from fermata.content.content_space import ContentSpace, SpaceKey, mark_space_deleted
from fermata.content.documents import document_commit, staged_commit
from fermata.content.documents.change_document import create_document, delete_document
from fermata.content.documents.document import DocumentContent, DocumentKey, DocumentVersion
from fermata.content.documents.document_history import restore_document
from fermata.content.media import sweep_media
from fermata.content.media.asset_store import AssetTexts, require_asset_files, store_asset
from fermata.content.model_store import create_space
from fermata.content.space_locales import change_space_locales
from fermata.content.sweep_spaces import sweep_due_spaces
from fermata.content.working_documents import WorkingDocuments
from fermata.domain.errors import Gone, ServiceUnavailable
from tests.images import make_image
from tests.resources import TestClock
from tests.unit.content.conftest import ADA

DAY = 86_400
TEXTS = AssetTexts("rye.jpg", "A loaf")
TALK = DocumentContent(title="Draft", slug="draft")


def sweep_after(resources: Resources, clock: TestClock, days: int) -> None:
    clock.advance(days * DAY + 3600)
    sweep_due_spaces(resources)


def list_files(resources: Resources, space: SpaceKey) -> list[str]:
    return resources.blobs.list_keys(f"{space.folder}/media")


def list_status(resources: Resources, space: SpaceKey) -> dict[str, str]:
    return {one.title: one.status for one in list_change_sets(resources, space)}


def change(resources: Resources, space: SpaceKey, change_set: str, name: str) -> None:
    change_in_change_set(resources, space, change_set, DocumentKey("post", name), lambda _before, _basis: TALK)


def test_each_space_is_looked_at_once_a_day_and_one_that_is_erased_is_not(
    resources: Resources, space: SpaceKey, clock: TestClock
) -> None:
    other = SpaceKey("bakery", "blog")
    create_space(resources, other, ContentSpace(), ADA)
    assert (sweep_due_spaces(resources), sweep_due_spaces(resources)) == (2, 0)
    change_space_locales(resources, space, ["de", "en"])
    assert sweep_due_spaces(resources) == 0, "a change of the space keeps the instant of the next look"
    mark_space_deleted(resources, other)
    clock.advance(DAY + 3600)
    assert sweep_due_spaces(resources, lambda: False) == 0
    assert sweep_due_spaces(resources) == 1


@pytest.mark.parametrize("is_waiting", [False, True])
def test_a_space_that_an_earlier_release_has_created_is_looked_at_after_its_next_change(
    resources: Resources, space: SpaceKey, *, is_waiting: bool
) -> None:
    change_set = begin_change_set(resources, space, "first", ADA).id
    key = (f"t#{space.tenant}#spaces", f"{space.site}#{space.environment}")
    resources.tables.write_items(Update("content", *key, "REMOVE gpk, gsk"))
    assert sweep_due_spaces(resources) == 0
    if is_waiting:
        change(resources, space, change_set, "a")
    else:
        create_document(resources, space, "post", ADA, TALK)
    assert (sweep_due_spaces(resources), sweep_due_spaces(resources)) == (1, 0)
    row = resources.tables.get_item("content", *key)
    create_document(resources, space, "post", ADA, DocumentContent(title="Other"))
    assert resources.tables.get_item("content", *key) == row, "the instant of the next look stays"


def test_a_change_set_that_nobody_has_changed_for_thirty_days_is_discarded(
    resources: Resources, space: SpaceKey, clock: TestClock
) -> None:
    worked_on = begin_change_set(resources, space, "worked on", ADA).id
    begin_change_set(resources, space, "stale", ADA)
    sweep_after(resources, clock, 20)
    change(resources, space, worked_on, "a")
    assert set(list_status(resources, space).values()) == {"open"}
    sweep_after(resources, clock, 11)
    assert list_status(resources, space) == {"worked on": "open", "stale": "discarded"}
    sweep_after(resources, clock, 20)
    assert list_status(resources, space)["worked on"] == "discarded"
    rows = resources.tables.query_items("content", space.pk, min_sk="b#", max_sk="b#~")
    assert rows == [], "its documents are deleted with it"


def test_a_commit_that_died_while_pending_is_taken_back(
    resources: Resources, space: SpaceKey, clock: TestClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    change_set = begin_change_set(resources, space, "large", ADA).id
    change(resources, space, change_set, "a")
    with monkeypatch.context() as dying:
        dying.setattr(document_commit, "MAX_WRITES", 1)
        dying.setattr(staged_commit, "build_switch", lambda *_: (_ for _ in ()).throw(SystemExit(1)))
        with pytest.raises(SystemExit):
            merge_change_set(resources, space, change_set, ADA)

    def list_marks() -> list[str]:
        return [row["sk"] for row in resources.tables.query_items("content", space.pk) if "staged_by" in row]

    assert list_marks() != []
    sweep_after(resources, clock, 1)
    assert list_marks() == []
    assert list_status(resources, space) == {"large": "open"}
    merge_change_set(resources, space, change_set, ADA)


def test_files_of_a_deleted_image_stay_for_thirty_days_and_it_can_be_restored_so_long(
    resources: Resources, space: SpaceKey, clock: TestClock
) -> None:
    documents = WorkingDocuments(resources, space, ADA)
    kept = store_asset(documents, make_image(40), TEXTS).version
    gone = store_asset(documents, make_image(50), TEXTS).version
    before = list_files(resources, space)
    delete_document(resources, space, gone.key, ADA)
    sweep_after(resources, clock, 1)
    sweep_after(resources, clock, 25)
    require_asset_files(resources, space, gone)
    restore_document(resources, space, gone.key, 1, ADA)
    sweep_after(resources, clock, 32)
    assert list_files(resources, space) == before
    delete_document(resources, space, gone.key, ADA)
    sweep_after(resources, clock, 1)
    sweep_after(resources, clock, 31)
    digest = str((kept.content or DocumentContent()).get_locale("data")["sha256"])
    assert {key.split("/")[-2] for key in list_files(resources, space)} == {digest}
    with pytest.raises(Gone, match="stay for 30 days after"):
        require_asset_files(resources, space, gone)
    assert store_asset(documents, make_image(50), TEXTS).is_new


def test_images_that_wait_in_a_change_set_keep_their_files_and_unfinished_ones_do_not(
    resources: Resources, space: SpaceKey, clock: TestClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    change_set = begin_change_set(resources, space, "images", ADA).id
    waiting = WorkingDocuments(resources, space, ADA, change_set=change_set)
    store_asset(waiting, make_image(40), TEXTS)
    with monkeypatch.context() as dying:
        dying.setattr(WorkingDocuments, "create", lambda *_args, **_options: (_ for _ in ()).throw(SystemExit(1)))
        with pytest.raises(SystemExit):
            store_asset(WorkingDocuments(resources, space, ADA), make_image(50), TEXTS)
    sweep_after(resources, clock, 1)
    sweep_after(resources, clock, 15)
    change(resources, space, change_set, "a")
    sweep_after(resources, clock, 17)
    assert len({key.split("/")[-2] for key in list_files(resources, space)}) == 1


def delete_and_die(
    resources: Resources, space: SpaceKey, clock: TestClock, monkeypatch: pytest.MonkeyPatch, *, are_files_gone: bool
) -> DocumentVersion:
    """Return an image that was deleted long ago, and whose sweep has died before or after it deleted the files."""
    version = store_asset(WorkingDocuments(resources, space, ADA), make_image(40), TEXTS).version
    delete_document(resources, space, version.key, ADA)
    sweep_after(resources, clock, 1)
    die_while_deleting(resources, clock, monkeypatch, are_files_gone=are_files_gone)
    return version


def die_while_deleting(
    resources: Resources, clock: TestClock, monkeypatch: pytest.MonkeyPatch, *, are_files_gone: bool = False
) -> None:
    delete_folder = resources.blobs.delete_folder

    def die(_blobs: object, folder: str) -> None:
        if are_files_gone:
            delete_folder(folder)
        raise SystemExit(1)

    with monkeypatch.context() as dying:
        dying.setattr(type(resources.blobs), "delete_folder", die)
        with pytest.raises(SystemExit):
            sweep_after(resources, clock, 31)


@pytest.mark.parametrize("are_files_gone", [False, True])
def test_an_image_whose_files_are_being_deleted_is_stored_when_a_sweep_has_ended_that(
    resources: Resources, space: SpaceKey, clock: TestClock, monkeypatch: pytest.MonkeyPatch, *, are_files_gone: bool
) -> None:
    documents = WorkingDocuments(resources, space, ADA)
    delete_and_die(resources, space, clock, monkeypatch, are_files_gone=are_files_gone)
    with pytest.raises(ServiceUnavailable, match="being deleted"):
        store_asset(documents, make_image(40), TEXTS)
    sweep_after(resources, clock, 1)
    assert store_asset(documents, make_image(40), TEXTS).is_new
    assert len(list_files(resources, space)) == 2


def test_an_image_whose_sweep_is_dead_is_stored_at_once_and_restored_no_more(
    resources: Resources, space: SpaceKey, clock: TestClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    documents = WorkingDocuments(resources, space, ADA)
    version = delete_and_die(resources, space, clock, monkeypatch, are_files_gone=False)
    clock.advance(sweep_media.DEAD_SWEEP_SECONDS - 1)
    with pytest.raises(ServiceUnavailable, match="being deleted"):
        require_asset_files(resources, space, version)
    clock.advance(1)
    with pytest.raises(Gone, match="Upload it again"):
        require_asset_files(resources, space, version)
    assert store_asset(documents, make_image(40), TEXTS).is_new
    sweep_after(resources, clock, 31)
    assert len(list_files(resources, space)) == 2


def test_an_image_is_not_taken_from_a_sweep_that_goes_on_where_a_dead_one_has_stopped(
    resources: Resources, space: SpaceKey, clock: TestClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    delete_and_die(resources, space, clock, monkeypatch, are_files_gone=False)
    is_dead = sweep_media._is_sweep_dead

    def look_and_sweep(*arguments: Any) -> bool:
        found = is_dead(*arguments)
        die_while_deleting(resources, clock, monkeypatch)
        return found

    monkeypatch.setattr(sweep_media, "_is_sweep_dead", look_and_sweep)
    clock.advance(sweep_media.DEAD_SWEEP_SECONDS)
    with pytest.raises(ServiceUnavailable, match="being deleted"):
        store_asset(WorkingDocuments(resources, space, ADA), make_image(40), TEXTS)


def test_an_image_that_is_used_again_in_the_last_moment_keeps_its_files(
    resources: Resources, space: SpaceKey, clock: TestClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    documents = WorkingDocuments(resources, space, ADA)
    version = store_asset(documents, make_image(40), TEXTS).version
    delete_document(resources, space, version.key, ADA)
    sweep_after(resources, clock, 1)
    find = sweep_media._find_used

    def find_and_restore(*arguments: object) -> set[str]:
        used = find(*arguments)  # type: ignore[arg-type]  # passed on as it came
        restore_document(resources, space, version.key, 1, ADA)
        return used

    monkeypatch.setattr(sweep_media, "_find_used", find_and_restore)
    sweep_after(resources, clock, 31)
    assert len(list_files(resources, space)) == 2


def test_the_instant_of_the_next_look_is_one(resources: Resources, space: SpaceKey) -> None:
    sweep_due_spaces(resources)
    row = resources.tables.get_item("content", f"t#{space.tenant}#spaces", f"{space.site}#{space.environment}")
    assert row is not None
    seconds = datetime.fromisoformat(row["gsk"]).timestamp() - resources.clock.time()
    assert DAY <= seconds < DAY + 3600


def test_documents_that_a_closed_change_set_has_left_are_deleted(
    resources: Resources, space: SpaceKey, clock: TestClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    change_set = begin_change_set(resources, space, "left", ADA).id
    change(resources, space, change_set, "a")
    row = resources.tables.query_items("content", space.pk, min_sk="b#", max_sk="b#~")[0]
    merge_change_set(resources, space, change_set, ADA)
    create_document(resources, space, "post", ADA, DocumentContent(title="Other", slug="other"))
    monkeypatch.undo()
    resources.tables.write_items(sweep_media.Put("content", row))
    sweep_after(resources, clock, 1)
    assert resources.tables.query_items("content", space.pk, min_sk="b#", max_sk="b#~") == []
