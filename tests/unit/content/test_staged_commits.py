"""Many documents are stored together: readers see all of them or none, whoever dies, whoever else writes meanwhile."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import chain
from time import process_time
from typing import Any

import pytest
from botocore.exceptions import EndpointConnectionError

from fermata.aws.dynamodb_items_and_writes import Put, Update, serialize_item
from fermata.aws.resources import Resources
from fermata.content.change_sets import change_set_documents
from fermata.content.change_sets.change_set import ChangedDocument, change_set_to_item, changed_document_to_item
from fermata.content.change_sets.change_set_documents import change_in_change_set
from fermata.content.change_sets.change_set_store import begin_change_set, read_change_set
from fermata.content.change_sets.merge_change_set import MergeRefused, merge_change_set
from fermata.content.content_space import SpaceKey
from fermata.content.documents import document_commit, staged_commit
from fermata.content.documents.change_document import create_document, delete_document, update_document
from fermata.content.documents.document import ContentAuthor, DocumentContent, DocumentKey
from fermata.content.documents.document_history import list_versions
from fermata.content.documents.document_writes import ValueTaken
from fermata.content.documents.list_documents import list_documents
from fermata.content.documents.read_document import (
    find_document_by_slug,
    find_owners_of_slug,
    read_document,
    read_document_version,
    read_versions_at_once,
)
from fermata.content.documents.settle_commit import LEASE_SECONDS, finish_commit
from fermata.content.files.read_project import make_project, read_cached_space, read_whole_space
from fermata.content.files.write_project import write_project
from fermata.content.model_store import read_model
from fermata.content.outbox import consume_content_changes, read_content_change, read_switched_commit
from fermata.content.publishing.delivery_token import (
    issue_delivery_token,
    list_delivery_tokens,
    open_delivery_token,
    revoke_delivery_token,
)
from fermata.domain.errors import NotFound, ServiceUnavailable
from tests.resources import TestClock
from tests.unit.content.conftest import ADA

BOB = ContentAuthor("bob", "agent")
RYE, OATS, MALT, CORN = (DocumentKey("post", name) for name in ("rye", "oats", "malt", "corn"))
ALL = [DocumentKey("post", name) for name in ("aaa", "again", "corn", "his", "malt", "oats", "rye")]
BEFORE = {"rye": "rye", "malt": "malt", "corn": "corn"}
AFTER = {"rye": "corn", "oats": "malt", "corn": "new-corn"}
"""The slugs of all documents. Two of them change hands, one document is new, and one is deleted."""


class ProcessDied(BaseException):
    """Nothing that a process would catch."""


def make_post(slug: str, body: str = "Bread") -> DocumentContent:
    return DocumentContent(title=slug, slug=slug, locales={"en": {"body": body}})


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch, space: SpaceKey) -> None:
    monkeypatch.setattr(document_commit, "MAX_WRITES", 6)
    monkeypatch.setattr(staged_commit, "CHUNK_WRITES", 3)


@pytest.fixture
def posts(resources: Resources, space: SpaceKey) -> None:
    for slug in BEFORE.values():
        create_document(resources, space, "post", ADA, make_post(slug), document_id=slug)


def fill_change_set(resources: Resources, space: SpaceKey) -> str:
    change_set = begin_change_set(resources, space, "Spring", BOB).id
    contents = {name: make_post(slug, "New") for name, slug in AFTER.items()} | {"malt": None}
    for name, content in contents.items():
        decide: Any = lambda _before, _basis, content=content: content  # noqa: E731
        change_in_change_set(resources, space, change_set, DocumentKey("post", name), decide)
    return change_set


@pytest.fixture
def change_set(resources: Resources, space: SpaceKey, posts: None) -> str:
    return fill_change_set(resources, space)


def read_by_documents(resources: Resources, space: SpaceKey) -> Iterator[tuple[str, str]]:
    for key in ALL:
        with suppress(NotFound):
            yield key.id, read_document(resources, space, key).content.slug  # type: ignore[union-attr]


def read_by_list(resources: Resources, space: SpaceKey) -> Iterator[tuple[str, str]]:
    after = ""
    while True:
        page = list_documents(resources, space, "post", limit=1, after=after)
        yield from ((head.id, head.slug) for head in page.documents)
        after = page.after
        if not after:
            return


def read_by_versions(resources: Resources, space: SpaceKey) -> Iterator[tuple[str, str]]:
    heads = list_documents(resources, space, "post").documents
    found = read_versions_at_once(resources, space, [(DocumentKey("post", head.id), head.version) for head in heads])
    assert len(found) == len(heads), "a list names no version that is not there"
    yield from ((key.id, version.content.slug) for (key, _), version in found.items() if version.content)


def read_by_slugs(resources: Resources, space: SpaceKey) -> Iterator[tuple[str, str]]:
    for slug in ("aaa", "corn", "malt", "new-corn", "rye"):
        with suppress(NotFound):
            found = find_document_by_slug(resources, space, "post", slug)
            assert find_owners_of_slug(resources, space, ["post", "page"], slug) == [found.key]
            assert found.content
            assert found.content.slug == slug
            yield found.id, slug


def read_by_space(resources: Resources, space: SpaceKey) -> Iterator[tuple[str, str]]:
    whole, cached = read_whole_space(resources, space), read_cached_space(resources, space)
    assert whole.versions == cached.versions
    yield from (
        (key.id, version.content.slug)
        for key, version in whole.versions.items()
        if key.model == "post" and version.content
    )


def read_by_history(resources: Resources, space: SpaceKey) -> Iterator[tuple[str, str]]:
    for key in ALL:
        with suppress(NotFound):
            newest = list_versions(resources, space, key, limit=1)[0]
            content = read_document_version(resources, space, key, newest.version).content
            if content:
                yield key.id, content.slug


READERS = (read_by_documents, read_by_list, read_by_versions, read_by_slugs, read_by_space, read_by_history)


def see(resources: Resources, space: SpaceKey) -> dict[str, str]:
    """Return what readers see, who all see the same."""
    seen = [dict(read(resources, space)) for read in READERS]
    for read, one in zip(READERS, seen, strict=True):
        assert one == seen[0], read.__name__
    return seen[0]


def watch_writes(resources: Resources, monkeypatch: pytest.MonkeyPatch, look: Callable[[int], object]) -> list[int]:
    """Call `look` before each write, with its number. Return the list of their sizes, which grows."""
    write, sizes = resources.tables.write_items, list[int]()

    def write_watched(*writes: Any) -> None:
        look(len(sizes))
        sizes.append(len(writes))
        write(*writes)

    monkeypatch.setattr(resources.tables, "write_items", write_watched)
    return sizes


def list_marks(resources: Resources, space: SpaceKey) -> list[str]:
    rows = resources.tables.query_items("content", space.pk)
    return [
        row["sk"] for row in rows if "staged_by" in row or (row["sk"].startswith("k#") and row["sk"].count("#") > 1)
    ]


def test_every_reader_sees_all_documents_change_at_one_moment(
    resources: Resources, space: SpaceKey, change_set: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[dict[str, str]] = []
    sizes = watch_writes(resources, monkeypatch, lambda _number: seen.append(see(resources, space)))
    assert merge_change_set(resources, space, change_set, ADA).status == "merged"
    seen.append(see(resources, space))
    assert len(sizes) > 8
    switches = [place for place in range(1, len(seen)) if seen[place] != seen[place - 1]]
    assert len(switches) == 1, "one write has let everything be seen"
    assert (seen[0], seen[-1]) == (BEFORE, AFTER)
    assert list_marks(resources, space) == []
    assert read_model(resources, space, "post").documents == 3
    assert read_change_set(resources, space, change_set).documents == ()
    assert [one.version for one in list_versions(resources, space, MALT)] == [2, 1]


def test_a_page_that_was_read_before_the_switch_is_of_one_moment(
    resources: Resources, space: SpaceKey, change_set: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pages: list[Any] = []
    query = partial(resources.tables.query_items, "content", space.pk, min_sk="d#post#", max_sk="d#post#~")
    watch_writes(resources, monkeypatch, lambda _number: pages.append(query()))
    merge_change_set(resources, space, change_set, ADA)
    for page in pages:
        reader = Resources(resources.settings, resources.clock)
        answers = chain([page], iter(query, None))
        monkeypatch.setattr(reader.tables, "query_items", lambda *_args, answers=answers, **_named: next(answers))
        heads = list_documents(reader, space, "post").documents
        assert {head.id: head.slug for head in heads} in (BEFORE, AFTER)


def test_a_merge_that_dies_anywhere_has_changed_nothing_or_everything_and_is_completed_by_the_next(
    resources: Resources, space: SpaceKey, posts: None, clock: TestClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(staged_commit, "CHUNK_WRITES", 6)
    outcomes: list[dict[str, str]] = []
    for death in range(100):
        change_set = fill_change_set(resources, space)

        def die(number: int, death: int = death) -> None:
            if number == death:
                raise ProcessDied

        with monkeypatch.context() as watched:
            watch_writes(resources, watched, die)
            try:
                merge_change_set(resources, space, change_set, ADA)
                break
            except ProcessDied:
                outcomes.append(dict(read_by_list(resources, space)))
                assert outcomes[-1] == dict(read_by_slugs(resources, space))
        clock.advance(LEASE_SECONDS + 1)
        merge_change_set(resources, space, change_set, ADA)
        assert see(resources, space) == AFTER
        _put_back(resources, space)
        assert list_marks(resources, space) == []
        assert read_model(resources, space, "post").documents == 3
    switch = outcomes.index(AFTER)
    assert outcomes == [BEFORE] * switch + [AFTER] * (len(outcomes) - switch)
    assert switch >= 3
    assert len(outcomes) - switch >= 3


def _put_back(resources: Resources, space: SpaceKey) -> None:
    delete_document(resources, space, OATS, ADA)
    for key, slug in ((CORN, "x-corn"), (RYE, "rye"), (CORN, "corn"), (MALT, "malt")):
        if key == MALT:
            create_document(resources, space, "post", ADA, make_post(slug), document_id="malt")
        else:
            update_document(resources, space, key, ADA, lambda _before, slug=slug: make_post(slug))


def die_in_merge(
    resources: Resources, space: SpaceKey, change_set: str, monkeypatch: pytest.MonkeyPatch, *, behind_switch: bool
) -> None:
    """Begin a merge whose process is gone after its second chunk, or right behind its switch."""
    switched: list[bool] = []
    write = resources.tables.write_items

    def write_and_die(*writes: Any) -> None:
        is_switch = isinstance(writes[0], Update) and writes[0].values.get(":to") == "committed"
        if switched or (is_switch and not behind_switch):
            raise ProcessDied
        write(*writes)
        if is_switch:
            switched.append(True)

    with monkeypatch.context() as watched:
        watched.setattr(resources.tables, "write_items", write_and_die)
        with pytest.raises(ProcessDied):
            merge_change_set(resources, space, change_set, ADA)


def test_a_writer_waits_for_a_commit_that_goes_on_and_takes_one_back_whose_process_is_gone(
    resources: Resources, space: SpaceKey, change_set: str, clock: TestClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    die_in_merge(resources, space, change_set, monkeypatch, behind_switch=False)
    with monkeypatch.context() as still:
        still.setattr(clock, "sleep", lambda _seconds: None)
        with pytest.raises(ServiceUnavailable) as refused:
            update_document(resources, space, RYE, ADA, lambda _before: make_post("rye", "Hers"))
    assert refused.value.retry_after == 1
    assert see(resources, space) == BEFORE
    clock.advance(LEASE_SECONDS + 1)
    update_document(resources, space, RYE, ADA, lambda _before: make_post("rye", "Hers"))
    assert (list_marks(resources, space), see(resources, space)) == ([], BEFORE)
    with pytest.raises(MergeRefused):
        merge_change_set(resources, space, change_set, ADA)
    assert (list_marks(resources, space), see(resources, space)) == ([], BEFORE)
    assert read_model(resources, space, "post").documents == 3


def test_a_writer_goes_on_from_what_is_stored_though_the_merge_died_behind_its_switch(
    resources: Resources, space: SpaceKey, change_set: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    die_in_merge(resources, space, change_set, monkeypatch, behind_switch=True)
    assert see(resources, space) == AFTER
    assert list_marks(resources, space)
    update_document(resources, space, RYE, ADA, lambda before: before.with_fields("en", {"excerpt": "Dark"}))
    create_document(resources, space, "post", ADA, make_post("rye"), document_id="again")
    assert see(resources, space) == AFTER | {"again": "rye"}
    assert list_marks(resources, space) == []
    assert read_model(resources, space, "post").documents == 4
    assert merge_change_set(resources, space, change_set, ADA).status == "merged"
    rows = resources.tables.query_items("content", space.pk, min_sk="b#", max_sk="b#~")
    assert rows == []


def test_a_merge_that_was_taken_back_while_it_slept_marks_nothing_more(
    resources: Resources, space: SpaceKey, change_set: str, clock: TestClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def sleep_long(number: int) -> None:
        if number == 2:
            clock.advance(LEASE_SECONDS + 1)
            other = resources_of(resources)
            update_document(other, space, MALT, BOB, lambda before: before.with_fields("en", {"excerpt": "His"}))

    with monkeypatch.context() as watched:
        watch_writes(resources, watched, sleep_long)
        with pytest.raises(MergeRefused):
            merge_change_set(resources, space, change_set, ADA)
    assert (list_marks(resources, space), see(resources, space)) == ([], BEFORE)


@pytest.mark.parametrize("meets", [0, 1, 3])
def test_of_two_merges_at_once_one_stores_its_documents_and_the_other_waits_or_decides_again(
    resources: Resources, space: SpaceKey, change_set: str, meets: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = begin_change_set(resources, space, "Summer", BOB).id
    for name in ("aaa", "corn", "rye"):
        decide: Any = lambda before, _basis, name=name: (  # noqa: E731
            before.content.with_fields("en", {"excerpt": "Hot"}) if before else make_post(name)
        )
        change_in_change_set(resources, space, other, DocumentKey("post", name), decide)

    outcomes: list[object] = []

    def merge_other(number: int) -> None:
        if number == meets:
            try:
                outcomes.append(merge_change_set(resources_of(resources), space, other, BOB).status)
            except ServiceUnavailable as refused:
                outcomes.append(refused.retry_after)

    with monkeypatch.context() as watched:
        watch_writes(resources, watched, merge_other)
        merge_change_set(resources, space, change_set, ADA)
    assert outcomes == (["merged"] if meets == 0 else [1])
    assert merge_change_set(resources, space, other, BOB).status == "merged"
    assert see(resources, space) == AFTER | {"aaa": "aaa"}
    assert list_marks(resources, space) == []
    content = read_document(resources, space, RYE).content
    assert content == make_post("corn", "New").with_fields("en", {"excerpt": "Hot"})
    assert read_document(resources, space, DocumentKey("post", "aaa")).change_set == other


def test_two_merges_of_one_change_set_store_its_documents_once(
    resources: Resources, space: SpaceKey, change_set: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def merge_too(number: int) -> None:
        if number == 0:
            merge_change_set(resources_of(resources), space, change_set, BOB)

    with monkeypatch.context() as watched:
        watch_writes(resources, watched, merge_too)
        assert merge_change_set(resources, space, change_set, ADA).status == "merged"
    assert see(resources, space) == AFTER
    assert [one.user for one in list_versions(resources, space, RYE)] == ["bob", "ada"]


def resources_of(resources: Resources) -> Resources:
    """Return the same tables for another process."""
    return Resources(resources.settings, resources.clock)


def test_a_switch_whose_response_is_lost_is_found_out(
    resources: Resources, space: SpaceKey, change_set: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, lost = resources.tables.write_items, []

    def write_and_lose(*writes: Any) -> None:
        write(*writes)
        if isinstance(writes[0], Update) and writes[0].values.get(":to") == "committed":
            lost.append(True)
            raise EndpointConnectionError(endpoint_url="dynamodb")

    monkeypatch.setattr(resources.tables, "write_items", write_and_lose)
    assert merge_change_set(resources, space, change_set, ADA).status == "merged"
    assert (len(lost), see(resources, space), list_marks(resources, space)) == (1, AFTER, [])


def test_a_value_that_another_document_has_taken_lets_nothing_be_stored(
    resources: Resources, space: SpaceKey, change_set: str
) -> None:
    create_document(resources, space, "post", BOB, make_post("new-corn"), document_id="his")
    with pytest.raises(ValueTaken, match="post/his"):
        merge_change_set(resources, space, change_set, ADA)
    assert (list_marks(resources, space), see(resources, space)) == ([], BEFORE | {"his": "new-corn"})
    assert read_model(resources, space, "post").documents == 4


def test_the_outbox_tells_of_documents_when_they_are_there_and_finishes_what_died(
    resources: Resources, space: SpaceKey, change_set: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    die_in_merge(resources, space, change_set, monkeypatch, behind_switch=True)
    rows = resources.tables.query_items("content", space.pk)
    marked = [_make_record("INSERT", row) for row in rows if row["sk"].startswith("h#") and "staged_by" in row]
    assert len(marked) == 4
    assert not any(map(read_content_change, marked))
    (commit,) = [row for row in rows if row["sk"].startswith("k#") and row["sk"].count("#") == 1]
    switched = _make_record("MODIFY", commit)
    assert read_switched_commit(_make_record("MODIFY", commit | {"status": "pending"})) is None
    told: list[Any] = []
    for _ in range(2):  # the stream may repeat it
        response = consume_content_changes([*marked, switched], told.append, partial(finish_commit, resources))
        assert response == {"batchItemFailures": []}
    assert (told, list_marks(resources, space), see(resources, space)) == ([], [], AFTER)
    released = [row for row in resources.tables.query_items("content", space.pk) if row.get("released")]
    changes = [read_content_change(_make_record("MODIFY", row)) for row in released]
    assert sorted((one.document.id, one.version) for one in changes if one) == [
        ("corn", 2),
        ("malt", 2),
        ("oats", 1),
        ("rye", 2),
    ]


def test_tokens_of_delivery_and_commits_whose_rows_are_beside_each_other_are_not_mistaken(
    resources: Resources, space: SpaceKey, change_set: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text, kept = issue_delivery_token(resources, space, "ada", "published")
    die_in_merge(resources, space, change_set, monkeypatch, behind_switch=True)
    assert list_delivery_tokens(resources, space) == [kept]
    assert open_delivery_token(resources, text) == kept
    commits = [row["sk"].removeprefix("k#") for row in list_commit_rows(resources, space)]
    assert commits
    for commit in commits:
        with pytest.raises(NotFound):
            revoke_delivery_token(resources, space, commit)
    _, other = issue_delivery_token(resources, space, "ada", "published")
    revoke_delivery_token(resources, space, other.id)
    (revoked,) = [row for row in resources.tables.query_items("content", space.pk) if row.get("revoked")]
    assert read_switched_commit(_make_record("MODIFY", revoked)) is None
    assert list_delivery_tokens(resources, space) == [kept]


def list_commit_rows(resources: Resources, space: SpaceKey) -> list[dict[str, Any]]:
    rows = resources.tables.query_items("content", space.pk)
    return [row for row in rows if row["sk"].startswith("k#") and "mode" not in row]


def _make_record(event: str, row: dict[str, Any]) -> dict[str, Any]:
    return {"eventName": event, "dynamodb": {"SequenceNumber": "1", "NewImage": serialize_item(row)}}


def test_an_import_of_many_documents_is_seen_whole(
    resources: Resources, space: SpaceKey, posts: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = make_project(read_whole_space(resources, space))
    documents = {DocumentKey("post", name): make_post(slug) for name, slug in AFTER.items()}
    seen: list[dict[str, str]] = []
    with monkeypatch.context() as watched:
        watch_writes(resources, watched, lambda _number: seen.append(dict(read_by_documents(resources, space))))
        write_project(resources, space, replace(project, documents=documents), ADA)
    assert see(resources, space) == AFTER
    assert all(one in (BEFORE, AFTER) for one in seen)


def test_a_hundred_documents_are_merged_within_the_limits_of_transactions(
    resources: Resources, space: SpaceKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    monkeypatch.setattr(change_set_documents, "check_content", lambda content, _key, _basis: (content, ()))
    change_set = begin_change_set(resources, space, "Many", BOB)
    large = {"en": {"body": "x" * 30_000}}
    rows = [
        ChangedDocument(
            model="post",
            id=f"p{number:03d}",
            base_version=0,
            content=DocumentContent(slug=f"p-{number:03d}", locales=large),
        )
        for number in range(100)
    ]
    counted = change_set.model_copy(update={"documents": 100})
    put = Put("content", change_set_to_item(space, counted))
    resources.tables.write_items(put)
    for row in rows:
        resources.tables.write_items(Put("content", changed_document_to_item(resources, space, change_set.id, row)))
    bodies: list[int] = []
    resources.tables._client.meta.events.register(
        "before-call.dynamodb.TransactWriteItems", lambda params, **_: bodies.append(len(params["body"]))
    )
    sizes = watch_writes(resources, monkeypatch, lambda _number: None)
    began = process_time()
    merge_change_set(resources, space, change_set.id, ADA)
    print(f"100 documents: {process_time() - began:.2f} s of CPU, {len(sizes)} writes")
    assert max(sizes) <= 100
    assert max(bodies) < 4_000_000
    assert read_model(resources, space, "post").documents == 100
