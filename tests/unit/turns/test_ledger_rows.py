"""Ledger rows: one per model request, written once, in the transaction that ends the request."""

from decimal import Decimal

import pytest

from fermata.aws.dynamodb_items_and_writes import Put
from fermata.conversations.message_views import read_message_page
from fermata.domain.events import UsageEvent
from fermata.domain.model_io import FinishReason, ModelResponse, TextDelta, TokenUsage
from fermata.turns.accounting import build_request_usage
from fermata.turns.pause import build_pause_key
from fermata.turns.round.begin_round import begin_round
from fermata.turns.round.model_request import send_model_request
from fermata.turns.round.open_turn import open_turn_context
from fermata.turns.turn_log import Superseded
from fermata.usage.ledger.ledger_store import build_request_put
from tests.faults import ProcessDied
from tests.unit.turns import invariants
from tests.unit.turns.scenarios import run_until_waiting
from tests.unit.turns.stage import (
    MAX_THREAD_WAIT_SECONDS,
    OK,
    RecordingConnection,
    Stage,
    make_provider_error,
    reply_with_calls,
    reply_with_text,
    tool_call_block,
)
from tests.unit.turns.state_machine import StateMachine

Row = tuple[int, int, int, str, bool, bool]


def ledger_usage(stage: Stage) -> list[Row]:
    """Return (round, attempt, try, outcome, estimated, billable) of every row."""
    names = ("round", "attempt", "tried", "outcome", "estimated", "billable")
    return [tuple(row[name] for name in names) for row in stage.ledger_rows()]


def usage_event(stage: Stage) -> UsageEvent:
    [event] = [event for event in stage.events() if isinstance(event, UsageEvent)]
    return event


def test_every_request_of_a_turn_has_a_row(stage: Stage) -> None:
    stage.start_turn()
    stage.script_replies(
        reply_with_calls(tool_call_block("list_documents")),
        reply_with_calls(tool_call_block("deleteNode", nodeId="n")),
        "Done.",
    )
    stage.run_workflow()
    stage.answer_request(OK)
    stage.run_workflow()
    assert ledger_usage(stage) == [(number, 1, 1, "ok", False, True) for number in (1, 2, 3)]
    assert usage_event(stage).prompt_tokens == 30
    invariants.check_invariants(stage)


@pytest.mark.parametrize("is_cancelled", [False, True])
def test_the_last_response_that_a_conversation_keeps_says_what_the_turn_has_used(
    stage: Stage, is_cancelled: bool
) -> None:
    stage.start_turn()
    stage.script_replies(
        reply_with_calls(tool_call_block("list_documents")),
        reply_with_calls(tool_call_block("deleteNode", nodeId="n")),
        "Done.",
    )
    stage.run_workflow()
    if is_cancelled:
        stage.cancel_turn()
    else:
        stage.answer_request(OK)
        stage.run_workflow()
    lines = read_message_page(stage.resources, stage.conversation, "fermata").lines
    *earlier, newest = [line["turnUsage"] for line in lines if line["role"] == "assistant"]
    total = usage_event(stage)
    assert newest == {
        "promptTokens": total.prompt_tokens,
        "completionTokens": total.completion_tokens,
        "costUsd": total.cost_usd,
    }
    assert [usage["promptTokens"] for usage in earlier] == ([10] if is_cancelled else [10, 20])
    instatic_lines = read_message_page(stage.resources, stage.conversation, "instatic").lines
    assert not any("turnUsage" in line for line in instatic_lines)


def test_a_row_names_its_turn_and_its_usage(stage: Stage) -> None:
    stage.start_turn()
    tokens = TokenUsage(prompt=7, completion=5, cache_read=100, cache_creation=20)
    stage.script_replies([ModelResponse(blocks=(), stop=FinishReason.END, tokens=tokens)])
    stage.run_workflow()
    [row] = stage.ledger_rows()
    whose = {name: row[name] for name in ("tenant", "user", "scope", "conversation", "turn", "provider", "model")}
    assert whose == {
        "tenant": "bakery",
        "user": "ada",
        "scope": "site",
        "conversation": stage.conversation.id,
        "turn": stage.turn.id,
        "provider": "anthropic",
        "model": "model-1",
    }
    assert [row[name] for name in ("prompt", "completion", "cacheRead", "cacheCreation")] == [7, 5, 100, 20]
    assert usage_event(stage).cache_read_tokens == 100
    invariants.check_invariants(stage)


def test_failed_requests_have_rows_and_are_not_billed(stage: Stage) -> None:
    stage.start_turn()
    stage.script_replies([make_provider_error()], [make_provider_error("provider_quota")], "Hello.")
    stage.run_workflow()
    assert ledger_usage(stage) == [
        (1, 1, 1, "provider_overloaded", False, False),
        (1, 1, 2, "provider_quota", False, False),
        (1, 1, 3, "ok", False, True),
    ]
    invariants.check_invariants(stage)


def test_an_interrupted_request_is_charged_the_reported_and_the_streamed_tokens(stage: Stage) -> None:
    stage.start_turn()
    error = make_provider_error(tokens=TokenUsage(prompt=50, completion=1, cache_read=9))
    stage.script_replies([TextDelta(text="x" * 400), error], "Hello.")
    stage.run_workflow()
    broken, whole = stage.ledger_rows()
    assert [broken[name] for name in ("prompt", "completion", "cacheRead", "estimated")] == [50, 100, 9, True]
    assert (broken["attempt"], whole["attempt"]) == (1, 2)
    assert usage_event(stage).prompt_tokens == 60
    invariants.check_invariants(stage)


def test_an_interrupted_request_without_reported_usage_is_estimated(stage: Stage) -> None:
    stage.start_turn("x" * 4000)
    stage.script_replies([TextDelta(text="x" * 400), make_provider_error(retryable=False)])
    stage.run_workflow()
    [row] = stage.ledger_rows()
    assert (row["completion"], row["estimated"], row["billable"]) == (100, True, False)
    assert row["prompt"] > 1000
    invariants.check_invariants(stage)


def test_the_next_invocation_accounts_for_the_request_of_a_dead_function(stage: Stage) -> None:
    stage.start_turn()
    stage.script_replies([TextDelta(text="x" * 400), ProcessDied()], "Hello.")
    assert StateMachine(stage).run() == "Finished"
    assert ledger_usage(stage) == [(1, 1, 0, "died", True, False), (1, 2, 1, "ok", False, True)]
    assert stage.ledger_rows()[0]["completion"] == 100
    invariants.check_invariants(stage)


def test_a_cancelled_request_is_recorded_as_estimated(stage: Stage) -> None:
    stage.start_turn("x" * 4000)
    stage.script_replies([TextDelta(text="x" * 400), stage.cancel_turn, *reply_with_text("late")])
    stage.run_workflow()
    [row] = stage.ledger_rows()
    assert (row["outcome"], row["estimated"], row["billable"], row["completion"]) == ("cancelled", True, True, 100)
    assert row["prompt"] > 1000
    assert usage_event(stage).completion_tokens == 100
    invariants.check_invariants(stage)


def test_requests_that_failed_before_a_cancel_have_rows(stage: Stage) -> None:
    stage.start_turn()
    stage.script_replies([make_provider_error()], [TextDelta(text="Hel"), stage.cancel_turn, *reply_with_text("late")])
    stage.run_workflow()
    assert sorted(row[3] for row in ledger_usage(stage)) == ["cancelled", "provider_overloaded"]
    invariants.check_invariants(stage)


def test_requests_that_failed_before_a_takeover_have_rows(stage: Stage) -> None:
    stage.start_turn()

    def take_over() -> None:
        stage.script_replies("Hello.")
        stage.advance_turn(newer, RecordingConnection())

    older, newer = stage.make_invocation(), stage.make_invocation()
    stage.script_replies([make_provider_error()], [TextDelta(text="Hel"), take_over, *reply_with_text("late")])
    stage.advance_turn(older)
    outcomes = [(row[1], row[2], row[3]) for row in ledger_usage(stage)]
    assert outcomes == [(1, 0, "died"), (1, 1, "provider_overloaded"), (2, 1, "ok")]
    invariants.check_invariants(stage)


def test_recovery_accounts_for_the_open_request(stage: Stage) -> None:
    stage.start_turn()
    stage.script_replies([TextDelta(text="Hel"), ProcessDied()])
    with pytest.raises(ProcessDied):
        stage.advance_turn()
    stage.recover_turn(has_execution_failed=True)
    assert ledger_usage(stage) == [(1, 1, 0, "error", True, False)]
    invariants.check_invariants(stage)


@pytest.mark.parametrize("when", ["before", "asking", "calls", "after"])
def test_ending_a_turn_without_an_open_request_adds_no_row(stage: Stage, when: str) -> None:
    rows = {"before": 0, "asking": 1, "calls": 1, "after": 1}[when]
    if when == "before":
        stage.start_turn()
        stage.cancel_turn()
    elif when == "asking":
        stage.start_turn()
        stage.script_replies([stage.cancel_turn, *reply_with_text("Hello.")])
        stage.run_workflow()
    elif when == "calls":
        run_until_waiting(stage, "deleteNode")
        stage.cancel_turn()
    else:
        stage.start_turn()
        stage.script_replies("Hello.")
        stage.run_workflow()
        stage.cancel_turn()
    assert len(stage.ledger_rows()) == rows
    invariants.check_invariants(stage)


@pytest.mark.parametrize("event", ["toolCall", "usage"])
def test_a_row_is_written_once_when_the_commits_response_was_lost(stage: Stage, event: str) -> None:
    stage.start_turn()
    stage.script_replies(reply_with_calls(tool_call_block("list_documents")), "Done.")
    stage.faults.lose_response("dynamodb.TransactWriteItems", contains=event)
    stage.run_workflow()
    assert stage.faults.is_spent
    assert len(stage.ledger_rows()) == 2
    invariants.check_invariants(stage)


def test_a_row_is_never_overwritten(stage: Stage) -> None:
    stage.start_turn()
    stage.script_replies("Hello.")
    stage.run_workflow()
    [before] = stage.ledger_rows()
    stage.advance_turn()
    stage.recover_turn(has_execution_failed=True)
    assert stage.ledger_rows() == [before]


def test_a_dead_requests_prompt_is_at_least_the_previous_context(stage: Stage) -> None:
    stage.start_turn()
    big = ModelResponse(
        blocks=(tool_call_block("list_documents"),),
        stop=FinishReason.TOOL_CALLS,
        tokens=TokenUsage(prompt=5_000, cache_read=20_000),
    )
    stage.script_replies([big], [TextDelta(text="Hel"), stage.cancel_turn, *reply_with_text("late")])
    stage.run_workflow()
    assert stage.ledger_rows()[-1]["prompt"] == 25_000
    invariants.check_invariants(stage)


def test_costs_are_exact_and_the_same_everywhere(stage: Stage) -> None:
    stage.set_price(input_per_mtok=Decimal("0.8"), output_per_mtok=Decimal(4), cache_read_per_mtok=Decimal("0.08"))
    stage.start_turn()
    tokens = TokenUsage(prompt=4, completion=23, cache_read=2455)
    stage.script_replies(
        [ModelResponse(blocks=(tool_call_block("list_documents"),), stop=FinishReason.TOOL_CALLS, tokens=tokens)],
        "Done.",
    )
    stage.run_workflow()
    rows = stage.ledger_rows()
    assert rows[0]["cost"] == Decimal("0.0002916")
    assert rows[1]["cost"] == Decimal("0.000028")
    assert stage.load_conversation().cost_usd_total == Decimal("0.0003196")
    invariants.check_invariants(stage)


def test_an_unpriced_request_differs_from_a_free_one(stage: Stage) -> None:
    stage.start_turn()
    free = TokenUsage(prompt=5, completion=5, reported_cost=Decimal(0))
    stage.script_replies(
        [ModelResponse(blocks=(tool_call_block("list_documents"),), stop=FinishReason.TOOL_CALLS, tokens=free)],
        [make_provider_error()],
        "Done.",
    )
    stage.run_workflow()
    assert [(row["cost"], row["priced"]) for row in stage.ledger_rows()] == [(0, True), (0, True), (0, False)]
    invariants.check_invariants(stage)


def test_a_dead_request_of_a_model_without_a_price_is_unpriced(stage: Stage) -> None:
    stage.start_turn()
    stage.script_replies([TextDelta(text="Hel"), stage.cancel_turn, *reply_with_text("late")])
    stage.run_workflow()
    assert [row["priced"] for row in stage.ledger_rows()] == [False]


def test_a_conversation_adds_up_usage_and_keeps_the_last_context(stage: Stage) -> None:
    for number in (1, 2, 3):
        stage.start_turn(f"Prompt {number}")
        stage.script_replies(
            [
                ModelResponse(
                    blocks=(), stop=FinishReason.END, tokens=TokenUsage(prompt=10 * number, completion=1, cache_read=5)
                )
            ]
        )
        stage.run_workflow()
    thread = stage.load_conversation()
    assert (thread.prompt_tokens_total, thread.completion_tokens_total, thread.cache_read_tokens_total) == (60, 3, 15)
    assert thread.context_tokens == 35


def test_a_response_without_reported_tokens_is_marked_as_estimated(stage: Stage) -> None:
    stage.start_turn()
    stage.script_replies(
        [ModelResponse(blocks=(), stop=FinishReason.END, tokens=TokenUsage(prompt=3), tokens_known=False)]
    )
    stage.run_workflow()
    assert ledger_usage(stage) == [(1, 1, 1, "ok", True, True)]


def test_a_row_that_is_stored_already_does_not_lead_to_another_request(stage: Stage) -> None:
    stage.start_turn()

    def store_row() -> None:
        usage = build_request_usage(
            stage.resources, stage.turn, TokenUsage(), round_=1, attempt=1, request_number=1, outcome="other"
        )
        stage.resources.tables.write_items(build_request_put(stage.resources, usage))

    stage.script_replies([TextDelta(text="Hel"), store_row, *reply_with_text("lo.", after="Hel")])
    assert stage.run_workflow() == "finished"
    assert len(stage.driver.requests) == 1
    assert stage.streamed_text() == "Hello."
    assert stage.event_types()[-1] == "done"


def test_a_response_that_cannot_be_stored_ends_the_turn_and_is_not_requested_again(stage: Stage) -> None:
    stage.start_turn()

    def store_pause() -> None:
        item = {"pk": stage.turn.pk, "sk": build_pause_key(1), "version": 7}
        stage.resources.tables.write_items(Put(stage.resources.settings.bridges_table, item))

    stage.script_replies([store_pause, *reply_with_calls(tool_call_block("deleteNode", nodeId="n"))])
    stage.advance_turn()
    assert len(stage.driver.requests) == 1
    assert ledger_usage(stage) == [(1, 1, 1, "ok", False, True)]
    assert [getattr(event, "code", None) for event in stage.terminal_events()] == ["broken"]


def test_a_failure_after_a_successor_began_is_not_booked_under_its_attempt(stage: Stage) -> None:
    stage.start_turn()

    def takes_over() -> None:
        stage.driver.scripts.appendleft(reply_with_text("Hello."))
        stage.advance_turn(newer, RecordingConnection())
        stage.resources.clock.sleep(1)  # the background thread looks at the log twice a second
        assert stage.connection.aborted.wait(MAX_THREAD_WAIT_SECONDS)

    older, newer = stage.make_invocation(), stage.make_invocation()
    closed = make_provider_error("provider_closed", retryable=False)
    stage.script_replies([takes_over, make_provider_error()], [closed])
    stage.advance_turn(older)
    assert [row[3] for row in ledger_usage(stage) if row[1] == 2] == ["ok"]


def test_the_usage_of_a_response_names_the_attempt_that_its_request_began_with(stage: Stage) -> None:
    """The background thread moves the view of the log to the attempt of a successor, before it stops the response."""
    stage.start_turn()
    older, newer = (open_turn_context(stage.resources, stage.make_invocation()) for _ in range(2))
    assert older is not None
    assert newer is not None
    begin_round(older)

    def take_over() -> None:
        newer.reload()
        begin_round(newer)
        with pytest.raises(Superseded):
            older.log.read_new_entries()
        assert older.log.state.request_attempts == 2

    stage.script_replies([take_over, reply_with_text("Hello.")[-1]])
    outcome = send_model_request(older, stage.connection)
    assert [(usage.round, usage.attempt) for usage in outcome.request_usages] == [(1, 1)]


def die(*_: object) -> None:
    raise ProcessDied


def test_a_failed_request_has_its_row_although_the_function_dies_before_it_repeats_it(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.start_turn()
    stage.script_replies([make_provider_error()], "Hello.")
    with monkeypatch.context() as patch:
        patch.setattr(stage.connection, "sleep", die)
        with pytest.raises(ProcessDied):
            stage.advance_turn()
    assert stage.run_workflow() == "finished"
    assert ledger_usage(stage) == [(1, 1, 1, "provider_overloaded", False, False), (1, 2, 1, "ok", False, True)]
    invariants.check_invariants(stage)


def test_a_turn_canceled_between_two_requests_sends_none_and_accounts_for_none(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.start_turn()
    stage.script_replies([make_provider_error()], "Hello.")
    monkeypatch.setattr(stage.connection, "sleep", lambda _seconds: stage.cancel_turn())
    stage.run_workflow()
    assert len(stage.driver.requests) == 1
    assert ledger_usage(stage) == [(1, 1, 1, "provider_overloaded", False, False)]
    invariants.check_invariants(stage)


def wait_for_second_round(stage: Stage) -> None:
    run_until_waiting(stage, "deleteNode")
    stage.script_replies("Done.")
    stage.answer_request(OK)


def test_a_function_that_dies_before_its_request_was_sent_leaves_no_row(stage: Stage) -> None:
    wait_for_second_round(stage)
    stage.faults.kill_process("dynamodb.Query", contains="#c#")
    with pytest.raises(ProcessDied):
        stage.run_workflow()
    assert stage.run_workflow() == "finished"
    assert [row[:2] for row in ledger_usage(stage)] == [(1, 1), (2, 1)]
    invariants.check_invariants(stage)


def test_a_turn_canceled_before_its_request_was_sent_sends_none(stage: Stage) -> None:
    wait_for_second_round(stage)
    stage.faults.interrupt("dynamodb.Query", stage.cancel_turn, contains="#c#")
    stage.run_workflow()
    assert len(stage.driver.requests) == len(stage.ledger_rows()) == 1
    invariants.check_invariants(stage)


def test_a_canceled_request_is_not_billable_unless_something_was_streamed(stage: Stage) -> None:
    stage.start_turn()
    stage.script_replies([stage.cancel_turn, *reply_with_text("late")])
    stage.run_workflow()
    assert ledger_usage(stage) == [(1, 1, 0, "cancelled", True, False)]
    invariants.check_invariants(stage)
