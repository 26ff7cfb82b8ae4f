"""Decisions are in a trail that shows every change: the first broken link is named."""

from collections.abc import Callable
from typing import Any

import pytest

from fermata.aws.dynamodb_items_and_writes import Item, Put
from fermata.turns.approvals import decision_trail
from fermata.turns.approvals.decision_trail import (
    FIRST_HASH,
    TrailReport,
    build_entry_sort_key,
    compute_entry_hash,
    iter_trail,
    trail_partition,
    verify_trail,
)
from tests.unit.turns.approvals.bakery import HEAD_BAKER, NO, YES, Bakery

TABLE = "bridges"


@pytest.fixture
def decided(bakery: Bakery) -> Bakery:
    bakery.ask_for(("bake", 1), ("bake", 2), ("bake", 3))
    for index, answer in enumerate((YES, NO, YES)):
        bakery.decide(answer, index)
    return bakery


def read_entry(bakery: Bakery, number: int) -> Item:
    item = bakery.stage.resources.tables.get_item(TABLE, trail_partition("bakery"), build_entry_sort_key(number))
    assert item is not None
    return item


def check(bakery: Bakery, **options: Any) -> TrailReport:
    return verify_trail(bakery.stage.resources, "bakery", **options)


def test_every_decision_is_an_entry_that_names_its_call_and_follows_the_one_before(decided: Bakery) -> None:
    entries = list(iter_trail(decided.stage.resources, "bakery"))
    assert [entry["number"] for entry in entries] == [1, 2, 3]
    assert [entry["previous"] for entry in entries] == [FIRST_HASH, entries[0]["hash"], entries[1]["hash"]]
    assert '"outcome":"denied"' in entries[1]["data"]
    assert decided.requested[1].approval_id in entries[1]["data"]
    assert decided.requested[1].input_hash in entries[1]["data"]
    assert entries[1]["personal"]["decidedBy"]["value"] == "grace"
    assert "grace" not in entries[1]["data"]
    assert "loaves" not in entries[1]["data"]
    assert check(decided) == TrailReport(3, entries[2]["hash"])


def change_data(item: Item) -> Item:
    return item | {"data": item["data"].replace("denied", "approved")}


def change_approver(item: Item) -> Item:
    return item | {"personal": item["personal"] | {"decidedBy": {"salt": "s", "value": "eve"}}}


def forge_hash(item: Item) -> Item:
    return item | {"hash": "f" * 64}


def forge_previous(item: Item) -> Item:
    return item | {"previous": "f" * 64}


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (change_data, "The entry was changed after it was written."),
        (change_approver, "The member decidedBy was changed after it was written."),
        (forge_hash, "The entry was changed after it was written."),
        (forge_previous, "The entry does not follow the one before it."),
    ],
)
def test_a_changed_entry_is_the_first_broken_link(
    decided: Bakery, change: Callable[[Item], Item], problem: str
) -> None:
    decided.stage.resources.tables.write_items(Put(TABLE, change(read_entry(decided, 2))))
    report = check(decided)
    assert (report.entries, report.broken_number, report.problem) == (1, 2, problem)


@pytest.mark.parametrize("member", ["number", "data", "previous", "hash", "personal"])
@pytest.mark.parametrize("damage", [None, "x", {"decidedBy": {}}])
def test_an_entry_that_cannot_be_read_is_the_first_broken_link(decided: Bakery, member: str, damage: Any) -> None:
    decided.stage.resources.tables.write_items(Put(TABLE, read_entry(decided, 2) | {member: damage}))
    report = check(decided)
    assert (report.entries, report.broken_number) == (1, 2)
    assert report.problem


@pytest.mark.parametrize("member", ["number", "data", "previous", "hash"])
def test_an_entry_that_lost_a_member_is_the_first_broken_link(decided: Bakery, member: str) -> None:
    entry = read_entry(decided, 2)
    decided.stage.resources.tables.write_items(
        Put(TABLE, {name: value for name, value in entry.items() if name != member})
    )
    report = check(decided)
    assert (report.broken_number, report.problem) == (
        2,
        "The entry cannot be read: it was changed after it was written.",
    )


@pytest.mark.parametrize("head", [None, {}, {"number": 3}, {"number": "3", "hash": "f"}, {"number": 0, "hash": "f"}])
def test_a_trail_whose_head_is_missing_or_damaged_does_not_hold(decided: Bakery, head: Item | None) -> None:
    rows = decided.stage.resources.tables
    rows.batch_delete(TABLE, [(trail_partition("bakery"), "head")])
    if head is not None:
        rows.write_items(Put(TABLE, {"pk": trail_partition("bakery"), "sk": "head", "v": 1} | head))
    report = check(decided)
    assert (report.entries, report.broken_number) == (3, 4)
    assert report.problem


@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_missing_entry_is_the_first_broken_link(decided: Bakery, number: int) -> None:
    decided.stage.resources.tables.batch_delete(TABLE, [(trail_partition("bakery"), build_entry_sort_key(number))])
    assert check(decided).broken_number == number


def test_a_trail_that_was_written_anew_lacks_the_hash_that_was_noted(decided: Bakery) -> None:
    noted = check(decided).hash
    assert check(decided, expected_hash=noted).broken_number == 0
    assert check(decided, expected_hash="e" * 64).problem == "The hash noted earlier is not in the trail."


def test_a_trail_that_lost_its_newest_entry_and_its_head_lacks_the_hash_that_was_noted(decided: Bakery) -> None:
    noted = check(decided).hash
    rows = decided.stage.resources.tables
    second = read_entry(decided, 2)
    rows.batch_delete(TABLE, [(trail_partition("bakery"), build_entry_sort_key(3))])
    head = {"pk": trail_partition("bakery"), "sk": "head", "v": 1, "number": 2, "hash": second["hash"]}
    rows.write_items(Put(TABLE, head))
    assert check(decided).problem == ""
    assert check(decided, expected_hash=noted).problem == "The hash noted earlier is not in the trail."


def test_an_entry_without_its_personal_members_still_holds(decided: Bakery) -> None:
    decided.stage.resources.tables.write_items(Put(TABLE, read_entry(decided, 2) | {"personal": {}}))
    assert check(decided).problem == ""


def test_decisions_about_two_turns_are_in_one_trail(bakery: Bakery) -> None:
    bakery.ask_for(("bake", 1))
    bakery.decide(YES)
    bakery.stage.run_workflow()
    bakery.ask_for(("bake", 2))
    bakery.decide(NO)
    assert check(bakery).entries == 2
    assert HEAD_BAKER.user == "grace"


def forge_next_entry(decided: Bakery) -> Item:
    last = read_entry(decided, 3)
    data = last["data"].replace('"number":3', '"number":4')
    chained = {"previous": last["hash"], "hash": compute_entry_hash(last["hash"], data)}
    return last | chained | {"number": 4, "sk": build_entry_sort_key(4), "data": data}


def test_an_entry_that_no_decision_has_added_is_named_though_it_follows_the_last_one(decided: Bakery) -> None:
    noted = check(decided).hash
    decided.stage.resources.tables.write_items(Put(TABLE, forge_next_entry(decided)))
    assert check(decided) == TrailReport(3, noted, 4, "The entry lies behind the head of the trail.")


@pytest.mark.parametrize(("number", "named", "broken"), [(2, 2, 3), (1, 3, 4), (3, 2, 4)])
def test_a_head_that_was_moved_back_or_names_another_entry_shows(
    decided: Bakery, number: int, named: int, broken: int
) -> None:
    head = {"pk": trail_partition("bakery"), "sk": "head", "v": 1, "number": number}
    decided.stage.resources.tables.write_items(Put(TABLE, head | {"hash": read_entry(decided, named)["hash"]}))
    report = check(decided)
    assert (report.broken_number, bool(report.problem)) == (broken, True)


def test_entries_that_decisions_add_during_a_check_are_no_problem(
    decided: Bakery, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read_and_append(resources: Any, tenant: str) -> Any:
        decided.stage.run_workflow()
        decided.ask_for(("bake", 4))
        decided.decide(YES)
        yield from iter_trail(resources, tenant)

    monkeypatch.setattr(decision_trail, "iter_trail", read_and_append)
    assert check(decided).problem == ""
