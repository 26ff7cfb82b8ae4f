"""Round ownership: a round has one writer, and a superseded writer stops without an error."""

from itertools import pairwise
from typing import Any

import pytest
from botocore.exceptions import ClientError

from fermata.domain.events import RoundStartedEvent
from fermata.domain.model_io import TextDelta
from fermata.turns.round.begin_round import begin_round
from fermata.turns.round.invocation import build_epoch
from fermata.turns.round.run_turn_steps import open_turn_context
from fermata.turns.round.turn_context import TurnContext
from fermata.turns.turn_log import StaleState
from tests.unit.turns.stage import (
    MAX_THREAD_WAIT_SECONDS,
    OK,
    RecordingConnection,
    Stage,
    reply_with_calls,
    reply_with_text,
    tool_call_block,
)

MORNING = "2026-01-01T08:00:"


def round_owners(stage: Stage) -> list[str]:
    return [event.owner for event in stage.events() if isinstance(event, RoundStartedEvent)]


def test_the_first_entry_of_a_round_names_its_owner(stage: Stage) -> None:
    stage.start_turn()
    stage.script_replies("Hello.")
    invocation = stage.advance_turn()
    assert stage.entries()[1].events == (RoundStartedEvent(round=1, epoch=invocation.epoch, owner=invocation.owner),)


@pytest.mark.parametrize(
    ("earlier", "later"),
    list(
        pairwise(
            [
                (1, f"{MORNING}00Z", 0),
                (1, f"{MORNING}00.001Z", 0),
                (1, f"{MORNING}00.02Z", 0),
                (1, f"{MORNING}00.02Z", 1),
                (1, f"{MORNING}00.021999Z", 0),
                (1, f"{MORNING}00.1Z", 2),
                (1, f"{MORNING}01Z", 0),
                (1, "2026-01-01T09:00:02+01:00", 0),
                (2, f"{MORNING}00Z", 0),
                (10, f"{MORNING}00Z", 0),
            ]
        )
    ),
)
def test_epochs_sort_by_time_in_any_notation_of_instants(earlier: Any, later: Any) -> None:
    assert build_epoch(*earlier) < build_epoch(*later)


def test_two_notations_of_one_instant_make_the_same_epoch() -> None:
    assert (
        build_epoch(1, f"{MORNING}00Z", 0)
        == build_epoch(1, f"{MORNING}00.000Z", 0)
        == build_epoch(1, "2026-01-01T09:00:00+01:00", 0)
    )


def test_an_invocation_with_a_lower_epoch_returns_at_once(stage: Stage) -> None:
    stage.start_turn()
    late = stage.make_invocation()
    stage.script_replies(reply_with_calls(tool_call_block("deleteNode", nodeId="a")))
    stage.advance_turn()
    before = stage.entries()
    stage.advance_turn(late)
    assert stage.entries() == before
    assert len(stage.driver.requests) == 1
    assert late.token in stage.workflow.open_tokens


def test_an_older_invocation_does_not_take_the_round_from_a_newer_one(stage: Stage) -> None:
    stage.start_turn()
    late = stage.make_invocation()
    stage.script_replies(
        [TextDelta(text="Hel"), lambda: stage.advance_turn(late, RecordingConnection()), *reply_with_text("lo.")]
    )
    newer = stage.advance_turn()
    assert round_owners(stage) == [newer.owner]
    assert stage.streamed_text() == "Hello."
    assert late.token in stage.workflow.open_tokens


def test_a_retry_has_a_higher_epoch_than_the_first_attempt(stage: Stage) -> None:
    stage.start_turn()
    moment = stage.next_entered_at()
    first, retry = stage.make_invocation(entered=moment), stage.make_invocation(entered=moment, retry=1)
    stage.script_replies("Hello.")
    stage.advance_turn(retry)
    stage.advance_turn(first)
    assert round_owners(stage) == [retry.owner]


def test_a_superseded_writer_stops_without_an_error(stage: Stage) -> None:
    stage.start_turn()

    def take_over() -> None:
        stage.script_replies(reply_with_calls(tool_call_block("deleteNode", nodeId="a"), text="Hello."))
        stage.advance_turn(newer, RecordingConnection())

    older, newer = stage.make_invocation(), stage.make_invocation()
    stage.script_replies(
        [TextDelta(text="Hel"), take_over, *reply_with_calls(tool_call_block("deleteNode", nodeId="b"), text="lo.")]
    )
    stage.advance_turn(older)
    assert round_owners(stage) == [older.owner, newer.owner]
    assert [request.input["nodeId"] for request in stage.tool_requests()] == ["a"]
    assert older.token in stage.workflow.open_tokens, "the token is the successor's business"
    assert stage.load_pause().callback_token == newer.token


def test_an_invocation_delivered_twice_leaves_one_writer(stage: Stage) -> None:
    stage.start_turn()
    moment = stage.next_entered_at()
    first = stage.make_invocation(entered=moment, owner="one")
    again = stage.make_invocation(entered=moment, owner="two")

    def once_more() -> None:
        stage.script_replies("Hello.")
        stage.advance_turn(again, RecordingConnection())

    stage.script_replies(
        [TextDelta(text="Hel"), once_more, *reply_with_calls(tool_call_block("deleteNode", nodeId="b"), text="lo.")]
    )
    stage.advance_turn(first)
    assert round_owners(stage) == ["one", "two"]
    assert stage.event_types()[-3:] == ["context", "usage", "done"]
    assert not stage.tool_requests()


def test_a_writer_that_finds_the_turn_ended_finishes_its_execution(stage: Stage) -> None:
    stage.start_turn()
    stage.script_replies(
        [
            TextDelta(text="Hel"),
            stage.cancel_turn,
            *reply_with_calls(tool_call_block("deleteNode", nodeId="b"), text="lo."),
        ]
    )
    invocation = stage.advance_turn()
    assert stage.event_types()[-2:] == ["usage", "cancelled"]
    assert stage.workflow.outputs[invocation.token]["next"] == "finish"


def test_an_execution_that_was_replaced_finishes(stage: Stage) -> None:
    stage.start_turn()
    late = stage.make_invocation(n=1)
    stage.workflow.states[stage.turn.id, 1] = ("FAILED", "States.ServiceRestart")
    stage.recover_turn()
    before = stage.entries()
    stage.advance_turn(late)
    assert stage.workflow.outputs[late.token]["next"] == "finish"
    assert stage.entries() == before


def test_nothing_is_written_after_the_token_was_sent(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    lengths: list[int] = []
    go_on = stage.workflow.resume_execution

    def watched(*given: Any, **how: Any) -> bool:
        lengths.append(len(stage.entries()))
        return go_on(*given, **how)

    monkeypatch.setattr(stage.workflow, "resume_execution", watched)
    stage.start_turn()
    stage.script_replies(reply_with_calls(tool_call_block("deleteNode", nodeId="a")), "Done.")
    stage.run_workflow()
    stage.answer_request(OK)
    assert lengths == [len(stage.entries())]
    stage.run_workflow()
    assert lengths[-1] == len(stage.entries())


@pytest.mark.parametrize("error", [ValueError("a bug"), ClientError({"Error": {"Code": "Throttling"}}, "GetItem")])
def test_an_error_of_a_superseded_writer_does_not_void_the_token_of_its_successor(
    stage: Stage, error: Exception
) -> None:
    stage.start_turn()

    def takes_over() -> None:
        stage.script_replies("Hello.")
        stage.advance_turn(newer, RecordingConnection())

    older, newer = stage.make_invocation(), stage.make_invocation()
    stage.script_replies([TextDelta(text="Hel"), takes_over, error])
    stage.advance_turn(older)
    assert stage.event_types()[-1] == "done"


def test_an_error_of_a_twin_that_has_taken_nothing_does_not_void_their_common_token(stage: Stage) -> None:
    stage.start_turn()
    moment = stage.next_entered_at()
    twin = stage.make_invocation(entered=moment, owner="twin")

    def run_twin() -> None:
        stage.faults.fail_call("dynamodb.TransactWriteItems", "ThrottlingException", contains="roundStarted")
        stage.advance_turn(twin, RecordingConnection())

    stage.faults.interrupt("dynamodb.PutItem", run_twin, contains="Hel")
    stage.script_replies("Hello.")
    stage.advance_turn(entered=moment, owner="one")
    assert stage.event_types()[-1] == "done"


def test_text_that_waits_when_a_writer_is_superseded_never_reaches_the_log(stage: Stage) -> None:
    """The background thread notices, and the provider goes on before it is told to stop."""
    stage.start_turn()

    def takes_over() -> None:
        stage.script_replies("Hello.")
        stage.advance_turn(newer, RecordingConnection())
        stage.resources.clock.sleep(1)  # the background thread looks at the log twice a second
        assert stage.connection.aborted.wait(MAX_THREAD_WAIT_SECONDS)

    older, newer = stage.make_invocation(), stage.make_invocation()
    stage.script_replies([TextDelta(text="Hel"), TextDelta(text="lo "), takes_over, *reply_with_text("all.")])
    stage.advance_turn(older)
    assert stage.streamed_text() == "HelHello."


def test_text_shown_while_a_successor_takes_the_round_is_not_shown_twice_to_readers_that_keep_it(stage: Stage) -> None:
    stage.start_turn(dialect="instatic")
    older, newer = stage.make_invocation(), stage.make_invocation()
    seen_without_text: list[TurnContext] = []

    def read_before_the_text() -> None:
        context = open_turn_context(stage.resources, newer)
        assert context is not None
        seen_without_text.append(context)

    def take_round_late() -> None:
        with pytest.raises(StaleState):
            begin_round(seen_without_text[0])

    stage.faults.interrupt("dynamodb.PutItem", read_before_the_text, contains="Hel")
    stage.script_replies([TextDelta(text="Hel"), take_round_late, *reply_with_text("lo.")])
    stage.advance_turn(older)
    assert stage.streamed_text() == "Hello."
    assert round_owners(stage) == [older.owner]
