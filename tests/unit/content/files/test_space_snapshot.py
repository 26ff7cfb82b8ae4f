"""A process that begins takes the snapshot of another one, and reads what has changed since; all of one moment."""

import time
from dataclasses import replace
from typing import Any

import pytest

from fermata.aws.blob_store import BlobStore
from fermata.aws.dynamodb_items_and_writes import Put
from fermata.aws.resources import Resources
from fermata.content.change_sets.change_set import ChangeSet
from fermata.content.change_sets.change_set_documents import change_in_change_set
from fermata.content.change_sets.change_set_store import begin_change_set
from fermata.content.change_sets.merge_change_set import merge_change_set
from fermata.content.content_space import ContentSpace, SpaceKey, forget_deleted_space, mark_space_deleted
from fermata.content.documents.change_document import update_document
from fermata.content.documents.document import ContentAuthor, DocumentContent, DocumentKey, DocumentVersion
from fermata.content.documents.read_document import WriteBasis
from fermata.content.files import read_project
from fermata.content.files.parse_project import parse_project_files
from fermata.content.files.read_project import read_cached_space, read_whole_space
from fermata.content.files.space_snapshot import (
    WHOLE_SPACE_SORT_KEY,
    read_space_snapshot,
    snapshot_folder,
    store_space_snapshot,
)
from fermata.content.files.sweep_copies import KEEP_COPY_SECONDS, sweep_copies
from fermata.content.files.whole_space import WholeSpace
from fermata.content.files.write_project import write_project
from fermata.content.model_store import create_space
from tests.resources import TestClock
from tests.unit.content.files.project_samples import make_tree

SPACE = SpaceKey("bakery", "studio")
ADA = ContentAuthor("ada-the-baker", "import")
FRESH, NOTE = DocumentKey("faq", "a1b2c3d4e5f6"), DocumentKey("note", "first-bread")


@pytest.fixture(autouse=True)
def project(resources: Resources, monkeypatch: pytest.MonkeyPatch) -> None:
    """A project in a space, of which a process makes a snapshot when it has read two documents."""
    monkeypatch.setattr(read_project, "MIN_SNAPSHOT_DOCUMENTS", 2)
    create_space(resources, SPACE, ContentSpace(locales=("en", "tr")), ADA)
    write_project(resources, SPACE, parse_project_files(make_tree()), ADA)


class Process:
    """A process that begins, and counts the documents that it reads from the table."""

    def __init__(self, resources: Resources) -> None:
        self.resources, self.read = Resources(resources.settings, resources.clock), 0
        ask = self.resources.tables.batch_get_by_keys

        def count(keys: Any, **options: Any) -> Any:
            self.read += sum(key.sk.startswith("h#") for key in keys)
            return ask(keys, **options)

        self.resources.tables.batch_get_by_keys = count  # type: ignore[method-assign]

    def open(self) -> WholeSpace:
        return read_cached_space(self.resources, SPACE)


def list_contents(whole: WholeSpace) -> dict[str, Any]:
    contents = {key: (one.version, one.at, one.content) for key, one in whole.versions.items()}
    return {"record": whole.record, "models": whole.models, "contents": contents, "marks": whole.marks}


def answer(resources: Resources, text: str) -> None:
    update_document(resources, SPACE, FRESH, ADA, lambda content: content.with_fields("en", {"answer": text}))


def test_a_process_that_begins_reads_what_has_changed_since_the_snapshot(resources: Resources) -> None:
    first, second = Process(resources), Process(resources)
    tree = first.open().tree
    assert second.open().tree == tree
    assert (first.read, second.read) == (len(first.open().versions), 0)
    answer(resources, "Of course.")
    third = Process(resources)
    assert list_contents(third.open()) == list_contents(read_whole_space(resources, SPACE))
    assert third.read == 1
    assert first.open().tree == third.open().tree != tree


def test_a_snapshot_names_nobody_and_one_that_is_missing_costs_time_only(resources: Resources) -> None:
    Process(resources).open()
    [key] = resources.blobs.list_keys(snapshot_folder(SPACE))
    assert ADA.user not in str(resources.blobs.get_json(key))
    resources.blobs.delete_folder(snapshot_folder(SPACE))
    process = Process(resources)
    assert list_contents(process.open()) == list_contents(read_whole_space(resources, SPACE))
    assert process.read == len(process.open().versions)


@pytest.mark.parametrize("stored", [[], {"form": 1}, {"form": 99}])
def test_a_snapshot_that_cannot_be_read_costs_time_only(
    resources: Resources, monkeypatch: pytest.MonkeyPatch, stored: Any
) -> None:
    Process(resources).open()
    monkeypatch.setattr(BlobStore, "find_json", lambda *_: stored)
    process = Process(resources)
    assert list_contents(process.open()) == list_contents(read_whole_space(resources, SPACE))


def test_a_space_with_half_of_a_character_is_read_without_a_snapshot(resources: Resources) -> None:
    whole = read_whole_space(resources, SPACE)
    version = next(iter(whole.versions.values()))
    broken = version.model_copy(update={"content": DocumentContent(title="\ud800")})
    store_space_snapshot(resources, SPACE, replace(whole, versions={version.key: broken}))
    assert read_space_snapshot(resources, SPACE, whole.record) is None


def test_a_snapshot_of_a_space_that_was_erased_is_not_taken_for_the_next_one(
    resources: Resources, clock: TestClock
) -> None:
    Process(resources).open()
    table = resources.settings.content_table
    rows = resources.tables.query_items(table, SPACE.pk)
    [late] = [row for row in rows if row["sk"] == WHOLE_SPACE_SORT_KEY]
    mark_space_deleted(resources, SPACE)
    resources.tables.batch_delete(table, [(row["pk"], row["sk"]) for row in rows])
    forget_deleted_space(resources, SPACE)
    clock.now += 60
    create_space(resources, SPACE, ContentSpace(), ADA)
    resources.tables.write_items(Put(table, late))
    assert FRESH not in Process(resources).open().versions


def test_copies_that_no_row_names_are_deleted_after_a_day(resources: Resources, clock: TestClock) -> None:
    clock.now = time.time()  # by which the bucket goes
    Process(resources).open()
    for text in ("First", "Second"):
        for key in (FRESH, NOTE):
            update_document(resources, SPACE, key, ADA, lambda old, text=text: old.with_fields("en", {"title": text}))  # type: ignore[misc]
        Process(resources).open()
    folder = snapshot_folder(SPACE)
    assert (len(resources.blobs.list_keys(folder)), sweep_copies(resources, SPACE)) == (3, 0)
    [newest] = [one for one in resources.blobs.list_keys(folder) if "Second" in str(resources.blobs.get_json(one))]
    clock.now += 2 * KEEP_COPY_SECONDS
    assert (sweep_copies(resources, SPACE), resources.blobs.list_keys(folder)) == (2, [newest])


@pytest.mark.parametrize("read", [read_whole_space, read_cached_space])
def test_a_space_that_is_read_during_a_merge_has_all_of_it_or_nothing(resources: Resources, read: Any) -> None:
    change_set = begin_change_set(resources, SPACE, "Spring", ADA).id

    def decide(before: DocumentVersion | None, _basis: WriteBasis) -> Any:
        assert before is not None
        assert before.content is not None
        return before.content.with_fields("en", {"title": "Spring"})

    for key in (FRESH, NOTE):
        change_in_change_set(resources, SPACE, change_set, key, decide)
    reader = Process(resources).resources
    ask, asked = reader.tables.query_items, list[ChangeSet]()

    def merge_between_pages(*arguments: Any, **options: Any) -> Any:
        before = ask(*arguments, **options)
        if options.get("min_sk") != "d#" or asked:
            return before
        asked.append(merge_change_set(resources, SPACE, change_set, ADA))
        after = ask(*arguments, **options)
        return [row for row in before if row["sk"] < "d#g"] + [row for row in after if row["sk"] > "d#g"]

    reader.tables.query_items = merge_between_pages  # type: ignore[method-assign]
    whole = read(reader, SPACE)
    titles = {key: whole.get_content(key).get_locale("en").get("title") for key in (FRESH, NOTE)}
    assert (len(asked), titles) == (1, {FRESH: "Spring", NOTE: "Spring"})
