"""The fold: what a screen shows is the same, however often and in whichever pieces the events arrive."""

from hypothesis import given
from hypothesis import strategies as st

from fermata_client import TurnView, fold_event, fold_events
from tests.client.scripted_events import (
    BRIDGE,
    context_event,
    done_event,
    number_events,
    ready_event,
    text_event,
    three_tool_turn,
    tool_call_event,
    tool_request_event,
    tool_result_event,
)

WHOLE = fold_events(three_tool_turn())


def test_a_turn_folds_into_rounds_with_text_and_badges() -> None:
    assert [a_round.text for a_round in WHOLE.rounds] == [
        "I will change two things – 那个🦀.\u2028",
        "And one more.",
        "Done.",
    ]
    assert [(badge.name, badge.state, badge.is_browser_tool) for badge in WHOLE.tool_calls] == [
        ("insertHtml", "ok", True),
        ("applyCss", "ok", True),
        ("deleteNode", "failed", True),
    ]
    assert WHOLE.tool_calls[2].error == "it broke"
    assert WHOLE.bridge_id == BRIDGE
    assert WHOLE.usage is not None
    assert WHOLE.status == "done"


@given(st.lists(st.integers(1, 3), min_size=30, max_size=30))
def test_events_delivered_up_to_three_times_fold_the_same(times: list[int]) -> None:
    events = three_tool_turn()
    repeated = [event for event, count in zip(events, times, strict=False) for _ in range(count)]
    assert fold_events(repeated) == WHOLE


@given(st.lists(st.integers(0, 17), max_size=6))
def test_replays_from_any_earlier_event_fold_the_same(restarts: list[int]) -> None:
    events = three_tool_turn()
    view, at = TurnView(), 0
    for restart in [*restarts, 0]:
        at = max(at, restart)
        view = fold_events(events[:at], view)
    assert fold_events(events, view) == WHOLE


def test_an_unknown_event_moves_the_cursor_and_nothing_else() -> None:
    before = fold_events(three_tool_turn()[:4])
    after = fold_event(before, {"type": "sparkles", "seq": 100, "text": "no"})
    assert (after.seq, after.rounds) == (100, before.rounds)


def test_an_event_without_a_number_is_not_folded() -> None:
    before = fold_events(three_tool_turn()[:4])
    assert fold_event(before, {"type": "text", "text": "twice?"}) is before


def test_a_retracted_round_loses_its_text_and_reasoning() -> None:
    events = number_events(
        ready_event(),
        text_event("Let me"),
        {"type": "reasoning", "text": "hmm"},
        {"type": "roundRetracted", "round": 1},
        text_event("One clean answer."),
        context_event(),
        done_event(),
    )
    view = fold_events(events)
    assert view.text == "One clean answer."
    assert [a_round.reasoning for a_round in view.rounds] == [""]


def test_a_retraction_leaves_the_rounds_before_it() -> None:
    events = number_events(
        ready_event(),
        text_event("First."),
        tool_call_event(1),
        context_event(),
        tool_request_event(1),
        tool_result_event(1),
        text_event("Half a sec"),
        {"type": "roundRetracted", "round": 2},
        text_event("Second."),
        done_event(),
    )
    view = fold_events(events)
    assert [a_round.text for a_round in view.rounds] == ["First.", "Second."]
    assert [badge.state for badge in view.tool_calls] == ["ok"]


def test_nothing_counts_after_the_terminal_event() -> None:
    late = [{"type": "text", "text": "still here", "seq": 900}, {"type": "error", "message": "no", "seq": 901}]
    assert fold_events(late, WHOLE) is WHOLE


def test_held_is_forgotten_with_the_next_event() -> None:
    held = fold_event(fold_events(three_tool_turn()[:3]), {"type": "held", "until": "…", "retryAfter": 3})
    assert held.held is not None
    assert fold_event(held, three_tool_turn()[3]).held is None
