"""The segments of a turn: where the responses of chat clients end, and what each of them shows."""

from typing import Any

from fermata.domain.events import (
    ApprovalDecidedEvent,
    ApprovalRequestedEvent,
    BridgeReadyEvent,
    DoneEvent,
    Event,
    RoundStartedEvent,
    TextEvent,
    ToolCallEvent,
    ToolRequestEvent,
    ToolResultEvent,
)
from fermata.wire.renderers.turn_fold import TurnFold, list_settled_calls

BROWSER_TOOLS = {"locate", "paint"}


def call(call_id: str, name: str) -> ToolCallEvent:
    return ToolCallEvent(tool_call_id=call_id, tool_name=name, input={"of": call_id})


def request(call_id: str, name: str) -> ToolRequestEvent:
    made = {"request_id": f"1.0.{call_id}", "effect_key": "e", "deadline": "2026-01-01T00:00:00.000Z"}
    return ToolRequestEvent(tool_call_id=call_id, tool_name=name, input={"of": call_id}, **made)


def result(call_id: str, name: str, **members: Any) -> ToolResultEvent:
    return ToolResultEvent(tool_call_id=call_id, tool_name=name, **({"ok": True} | members))


def approval(call_id: str, name: str) -> ApprovalRequestedEvent:
    return ApprovalRequestedEvent(
        approval_id=f"a-{call_id}", tool_call_id=call_id, tool_name=name, input={"of": call_id}, input_hash="h",
        description="It does something.", reasons=("tool",), timestamp="t", deadline="d",
    )  # fmt: skip


def decision(call_id: str, name: str, *, approved: bool) -> ApprovalDecidedEvent:
    outcome = "approved" if approved else "denied"
    return ApprovalDecidedEvent(
        approval_id=f"a-{call_id}", tool_call_id=call_id, tool_name=name, outcome=outcome, approved=approved,
        input_hash="h",
    )  # fmt: skip


def began(number: int) -> RoundStartedEvent:
    return RoundStartedEvent(round=number, epoch="e", owner="o")


def fold_entries(*entries: list[Event]) -> tuple[TurnFold, list[list[str]]]:
    """Fold entries, and return for each what it shows: the segment and a word for the step."""
    fold = TurnFold(BROWSER_TOOLS.__contains__)
    shown = []
    for events in entries:
        steps = fold.fold(events)
        shown.append([f"{segment} {_name(step)}" for segment, step in steps])
    return fold, shown


def _name(step: Any) -> str:
    words = {"CallShown": "shows", "ApprovalShown": "asks", "CallAnswered": "answers"}
    kind = type(step).__name__
    return f"{words[kind]} {step.call_id}" if kind in words else kind


def test_calls_of_the_client_are_shown_together_and_end_the_response() -> None:
    calls = [call("a", "locate"), call("b", "paint"), call("c", "search"), request("a", "locate")]
    fold, shown = fold_entries([BridgeReadyEvent(bridge_id="t")], [began(1)], [TextEvent(text="I look.")], calls)
    assert shown[1:] == [["0 RoundBegun"], ["0 TextPiece"], ["0 shows a", "0 shows b"]]
    assert fold.waits_for_client
    fold, shown = fold_entries(
        [BridgeReadyEvent(bridge_id="t")], [began(1)], calls, [result("a", "locate"), request("b", "paint")],
        [result("b", "paint")], [result("c", "search")], [began(2)], [DoneEvent()],
    )  # fmt: skip
    assert shown[3:6] == [["1 answers a"], ["2 answers b", "2 shows c"], ["2 answers c"]]
    assert shown[6:] == [["2 RoundBegun"], ["2 TurnOver"]]
    assert (fold.shown_in["a"], fold.shown_in["b"], fold.shown_in["c"]) == (0, 0, 2)


def test_a_server_call_before_the_clients_is_answered_in_the_same_response() -> None:
    calls = [call("s", "search"), call("a", "locate")]
    fold, shown = fold_entries([began(1)], calls, [result("s", "search"), request("a", "locate")])
    assert shown[1:] == [["0 shows s", "0 shows a"], ["0 answers s"]]
    assert fold.waits_for_client


def test_calls_behind_an_approval_wait_for_it() -> None:
    calls = [call("x", "publish"), call("s", "search"), call("y", "publish")]
    asked = [approval("x", "publish"), approval("y", "publish")]
    approved = decision("x", "publish", approved=True)
    _, shown = fold_entries(
        [began(1)], [*calls, *asked], [approved], [result("x", "publish")], [result("s", "search")],
    )  # fmt: skip
    assert shown[1:] == [
        ["0 shows x", "0 asks x"],
        ["1 shows s", "1 shows y", "1 asks y"],
        ["1 answers x"],
        ["1 answers s"],
    ]


def test_two_approvals_are_asked_together_and_a_denied_call_is_told_as_denied() -> None:
    calls = [call("x", "publish"), call("y", "publish"), approval("x", "publish"), approval("y", "publish")]
    fold, shown = fold_entries([began(1)], calls)
    assert shown[1] == ["0 shows x", "0 asks x", "0 shows y", "0 asks y"]
    steps = fold.fold([decision("x", "publish", approved=False), result("x", "publish", ok=False, error="No.")])
    assert [(step.call_id, step.is_denied) for _, step in steps if _name(step).startswith("answers")] == [("x", True)]
    assert fold.waits_for_client


def test_an_approved_browser_call_is_shown_again_when_it_may_run() -> None:
    fold, shown = fold_entries(
        [began(1)],
        [call("a", "paint"), approval("a", "paint")],
        [decision("a", "paint", approved=True), request("a", "paint")],
    )
    assert shown[1:] == [["0 shows a", "0 asks a"], ["1 shows a"]]
    assert fold.waits_for_client


def test_an_id_that_a_provider_gives_twice_is_told_apart() -> None:
    first = [call("call_0", "search"), result("call_0", "search")]
    fold, shown = fold_entries([began(1)], first, [began(2)], first)
    assert shown[3] == ["0 shows call_0~2", "0 answers call_0~2"]
    assert list(fold.calls) == ["call_0", "call_0~2"]


def test_a_log_that_is_read_again_shows_settled_calls_as_settled() -> None:
    entries: list[list[Event]] = [[began(1)], [call("a", "paint"), request("a", "paint")], [result("a", "paint")]]
    settled = list_settled_calls(entries)
    assert settled == {"a"}
    fold = TurnFold(BROWSER_TOOLS.__contains__, settled=settled)
    steps = [step for events in entries for _, step in fold.fold(events)]
    assert [getattr(step, "is_settled", None) for step in steps] == [None, True, None]
    assert not fold.waits_for_client


def test_a_round_that_is_taken_again_begins_no_second_step() -> None:
    _, shown = fold_entries([began(1)], [began(1)], [TextEvent(text="x")])
    assert shown == [["0 RoundBegun"], [], ["0 TextPiece"]]
