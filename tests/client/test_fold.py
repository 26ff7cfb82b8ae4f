"""The fold: what a screen shows is the same, however often and in whichever pieces the events arrive."""

from hypothesis import given
from hypothesis import strategies as st

from fermata_client import TurnView, fold, fold_all
from tests.client import scripted_service as say

WHOLE = fold_all(say.two_tool_turn())


def test_a_turn_folds_into_rounds_with_text_and_badges() -> None:
    assert [a_round.text for a_round in WHOLE.rounds] == [
        "I will change two things – 那个🦀.\u2028",
        "And one more.",
        "Done.",
    ]
    assert [(badge.name, badge.state, badge.asked) for badge in WHOLE.tools] == [
        ("insertHtml", "ok", True),
        ("applyCss", "ok", True),
        ("deleteNode", "failed", True),
    ]
    assert WHOLE.tools[2].error == "it broke"
    assert WHOLE.bridge_id == say.BRIDGE
    assert WHOLE.usage is not None
    assert WHOLE.status == "done"


@given(st.lists(st.integers(1, 3), min_size=30, max_size=30))
def test_events_delivered_up_to_three_times_fold_the_same(times: list[int]) -> None:
    events = say.two_tool_turn()
    repeated = [event for event, count in zip(events, times, strict=False) for _ in range(count)]
    assert fold_all(repeated) == WHOLE


@given(st.lists(st.integers(0, 17), max_size=6))
def test_replays_from_any_earlier_event_fold_the_same(restarts: list[int]) -> None:
    events = say.two_tool_turn()
    view, at = TurnView(), 0
    for restart in [*restarts, 0]:
        at = max(at, restart)
        view = fold_all(events[:at], view)
    assert fold_all(events, view) == WHOLE


def test_an_unknown_event_moves_the_cursor_and_nothing_else() -> None:
    before = fold_all(say.two_tool_turn()[:4])
    after = fold(before, {"type": "sparkles", "seq": 100, "text": "no"})
    assert (after.seq, after.rounds) == (100, before.rounds)


def test_an_event_without_a_number_is_not_folded() -> None:
    before = fold_all(say.two_tool_turn()[:4])
    assert fold(before, {"type": "text", "text": "twice?"}) is before


def test_a_retracted_round_loses_its_text_and_reasoning() -> None:
    events = say.numbered(
        say.ready(),
        say.text("Let me"),
        {"type": "reasoning", "text": "hmm"},
        {"type": "roundRetracted", "round": 1},
        say.text("One clean answer."),
        say.context(),
        say.done(),
    )
    view = fold_all(events)
    assert view.text == "One clean answer."
    assert [a_round.reasoning for a_round in view.rounds] == [""]


def test_a_retraction_leaves_the_rounds_before_it() -> None:
    events = say.numbered(
        say.ready(),
        say.text("First."),
        say.call(1),
        say.context(),
        say.request(1),
        say.result(1),
        say.text("Half a sec"),
        {"type": "roundRetracted", "round": 2},
        say.text("Second."),
        say.done(),
    )
    view = fold_all(events)
    assert [a_round.text for a_round in view.rounds] == ["First.", "Second."]
    assert [badge.state for badge in view.tools] == ["ok"]


def test_nothing_counts_after_the_terminal_event() -> None:
    late = [{"type": "text", "text": "still here", "seq": 900}, {"type": "error", "message": "no", "seq": 901}]
    assert fold_all(late, WHOLE) is WHOLE


def test_held_is_forgotten_with_the_next_event() -> None:
    held = fold(fold_all(say.two_tool_turn()[:3]), {"type": "held", "until": "…", "retryAfter": 3})
    assert held.held is not None
    assert fold(held, say.two_tool_turn()[3]).held is None
