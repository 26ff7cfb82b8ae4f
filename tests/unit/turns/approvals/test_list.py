"""The approvals that wait are found with one query of an index a page, by those who may decide."""

from collections import Counter
from typing import Any

import pytest

from fermata.domain.errors import InvalidRequest, NotFound
from fermata.turns.approvals.approval_record import ApprovalRecord, build_approval_id, build_approval_put
from fermata.turns.approvals.list_approvals import build_approval_view, get_approval, list_waiting_approvals
from tests.unit.turns.approvals.bakery import HEAD_BAKER, YES, Bakery


def make_record(number: int) -> ApprovalRecord:
    turn = f"turn{number:017d}"
    return ApprovalRecord(
        id=build_approval_id(turn, 1, 0, "nonce"),
        tenant="bakery",
        turn=turn,
        user="ada",
        scope="site" if number % 2 else "content",
        conversation="c",
        agent="site@0",
        tool_call_id="call",
        tool_name="bake",
        description="Bakes.",
        risk="high",
        access="write",
        reasons=("tool",),
        input_preview="{}",
        input_hash="0" * 64,
        tool_digest="0",
        requested_at=f"2026-01-01T00:00:00.{number:06d}Z",
        deadline=4e9,
        expires=4_000_000_000,
    )


def fill_list(bakery: Bakery, count: int) -> None:
    tables = bakery.stage.resources.tables
    for number in range(count):
        tables.write_items(build_approval_put(bakery.stage.resources, make_record(number)))


def count_calls(bakery: Bakery, monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    calls: Counter[str] = Counter()
    client = bakery.stage.resources.tables._client
    original = client._make_api_call

    def count(name: str, *rest: Any) -> Any:
        calls[name] += 1
        return original(name, *rest)

    monkeypatch.setattr(client, "_make_api_call", count)
    return calls


@pytest.mark.exhaustive
def test_a_thousand_waiting_approvals_are_listed_with_one_query_a_page(
    bakery: Bakery, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill_list(bakery, 1_000)
    calls = count_calls(bakery, monkeypatch)
    found: list[str] = []
    cursor, pages = "", 0
    while pages == 0 or cursor:
        page = list_waiting_approvals(bakery.stage.resources, HEAD_BAKER, cursor, 100)
        found += [record.turn for record in page.approvals]
        cursor, pages = page.next_cursor, pages + 1
    assert found == [f"turn{number:017d}" for number in range(1_000)]
    assert calls == {"Query": pages, "BatchGetItem": pages - 1}
    assert pages == 11


def test_a_waiting_call_is_listed_until_it_is_decided(bakery: Bakery) -> None:
    bakery.ask_for(("bake", 1), ("bake", 2))
    listed = list_waiting_approvals(bakery.stage.resources, HEAD_BAKER, "", 50)
    assert [build_approval_view(record)["input"] for record in listed.approvals] == [{"loaves": 1}, {"loaves": 2}]
    bakery.decide(YES, 0)
    listed = list_waiting_approvals(bakery.stage.resources, HEAD_BAKER, "", 50)
    assert [record.id for record in listed.approvals] == [bakery.requested[1].approval_id]


@pytest.mark.parametrize("end", ["cancelled", "expired"])
def test_what_nobody_can_decide_any_more_is_not_listed(bakery: Bakery, end: str) -> None:
    bakery.ask_for(("bake", 1))
    if end == "cancelled":
        bakery.stage.cancel_turn()
    else:
        bakery.stage.pass_time(8 * 86_400)
    assert list_waiting_approvals(bakery.stage.resources, HEAD_BAKER, "", 50).approvals == ()


def test_the_list_shows_the_scopes_and_the_workspace_of_the_caller_only(bakery: Bakery) -> None:
    fill_list(bakery, 4)
    key_of_site = HEAD_BAKER.model_copy(update={"scopes": frozenset({"site"})})
    listed = list_waiting_approvals(bakery.stage.resources, key_of_site, "", 50)
    assert {record.scope for record in listed.approvals} == {"site"}
    rival = HEAD_BAKER.model_copy(update={"tenant": "rival"})
    assert list_waiting_approvals(bakery.stage.resources, rival, "", 50).approvals == ()


def test_a_cursor_of_another_workspace_leads_nowhere_else(bakery: Bakery) -> None:
    fill_list(bakery, 4)
    cursor = list_waiting_approvals(bakery.stage.resources, HEAD_BAKER, "", 2).next_cursor
    rival = HEAD_BAKER.model_copy(update={"tenant": "rival"})
    assert list_waiting_approvals(bakery.stage.resources, rival, cursor, 2).approvals == ()
    with pytest.raises(InvalidRequest):
        list_waiting_approvals(bakery.stage.resources, HEAD_BAKER, "x" + cursor, 2)


def test_an_approval_is_shown_whole_while_it_waits_and_with_its_decision_afterwards(bakery: Bakery) -> None:
    bakery.ask_for(("bake", 1))
    approval_id = bakery.requested[0].approval_id
    shown = get_approval(bakery.stage.resources, HEAD_BAKER, approval_id)
    assert (shown["state"], shown["input"], shown["toolName"]) == ("waiting", {"loaves": 1}, "bake")
    bakery.decide(YES)
    shown = get_approval(bakery.stage.resources, HEAD_BAKER, approval_id)
    assert (shown["state"], shown["decidedBy"]) == ("approved", "grace")
    with pytest.raises(NotFound):
        get_approval(bakery.stage.resources, HEAD_BAKER.model_copy(update={"tenant": "rival"}), approval_id)
