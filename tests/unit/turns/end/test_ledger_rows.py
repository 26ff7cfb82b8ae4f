"""Ledger (design §4): one row per provider request, written in the transaction that ends it, exactly once."""

from decimal import Decimal

import pytest

from fermata.domain.events import UsageEvent
from fermata.domain.model_io import FinishReason, ModelResponse, TextDelta, TokenUsage
from tests.faults import ProcessDied
from tests.unit.turns import invariants
from tests.unit.turns.scenarios import run_until_waiting
from tests.unit.turns.stage import (
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


def ledger(stage: Stage) -> list[Row]:
    """(round, attempt, try, outcome, estimated, billable) of every row."""
    names = ("round", "attempt", "tried", "outcome", "estimated", "billable")
    return [tuple(row[name] for name in names) for row in stage.ledger_rows()]


def usage(stage: Stage) -> UsageEvent:
    [told] = [event for event in stage.events() if isinstance(event, UsageEvent)]
    return told


def test_every_request_of_a_turn_has_its_row(stage: Stage) -> None:
    stage.start_turn()
    stage.script_replies(
        reply_with_calls(tool_call_block("list_documents")),
        reply_with_calls(tool_call_block("deleteNode", nodeId="n")),
        "Done.",
    )
    stage.run_workflow()
    stage.answer_request(OK)
    stage.run_workflow()
    assert ledger(stage) == [(number, 1, 1, "ok", False, True) for number in (1, 2, 3)]
    assert usage(stage).prompt_tokens == 30
    invariants.check_invariants(stage)


def test_a_row_says_whose_request_it_was_and_what_it_used(stage: Stage) -> None:
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
    assert usage(stage).cache_read_tokens == 100
    invariants.check_invariants(stage)


def test_failed_requests_have_rows_too_and_are_not_billed(stage: Stage) -> None:
    stage.start_turn()
    stage.script_replies([make_provider_error()], [make_provider_error("provider_quota")], "Hello.")
    stage.run_workflow()
    assert ledger(stage) == [
        (1, 1, 1, "provider_overloaded", False, False),
        (1, 1, 2, "provider_quota", False, False),
        (1, 1, 3, "ok", False, True),
    ]
    invariants.check_invariants(stage)


def test_a_request_that_broke_off_is_charged_what_its_provider_told_and_what_was_shown(stage: Stage) -> None:
    stage.start_turn()
    told = make_provider_error(tokens=TokenUsage(prompt=50, completion=1, cache_read=9))
    stage.script_replies([TextDelta(text="x" * 400), told], "Hello.")
    stage.run_workflow()
    broken, whole = stage.ledger_rows()
    assert [broken[name] for name in ("prompt", "completion", "cacheRead", "estimated")] == [50, 100, 9, True]
    assert (broken["attempt"], whole["attempt"]) == (1, 2)
    assert usage(stage).prompt_tokens == 60
    invariants.check_invariants(stage)


def test_a_request_that_broke_off_untold_is_estimated(stage: Stage) -> None:
    stage.start_turn("x" * 4000)
    stage.script_replies([TextDelta(text="x" * 400), make_provider_error(retryable=False)])
    stage.run_workflow()
    [row] = stage.ledger_rows()
    assert (row["completion"], row["estimated"], row["billable"]) == (100, True, False)
    assert row["prompt"] > 1000
    invariants.check_invariants(stage)


def test_a_request_whose_function_died_is_accounted_for_by_the_next_attempt(stage: Stage) -> None:
    stage.start_turn()
    stage.script_replies([TextDelta(text="x" * 400), ProcessDied()], "Hello.")
    assert StateMachine(stage).run() == "Finished"
    assert ledger(stage) == [(1, 1, 0, "died", True, False), (1, 2, 1, "ok", False, True)]
    assert stage.ledger_rows()[0]["completion"] == 100
    invariants.check_invariants(stage)


def test_a_request_that_was_cancelled_half_way_is_recorded_and_flagged_as_estimated(stage: Stage) -> None:
    stage.start_turn("x" * 4000)
    stage.script_replies([TextDelta(text="x" * 400), stage.cancel_turn, *reply_with_text("late")])
    stage.run_workflow()
    [row] = stage.ledger_rows()
    assert (row["outcome"], row["estimated"], row["billable"], row["completion"]) == ("cancelled", True, True, 100)
    assert row["prompt"] > 1000
    assert usage(stage).completion_tokens == 100
    invariants.check_invariants(stage)


def test_requests_that_failed_before_a_cancel_keep_their_rows(stage: Stage) -> None:
    stage.start_turn()
    stage.script_replies([make_provider_error()], [TextDelta(text="Hel"), stage.cancel_turn, *reply_with_text("late")])
    stage.run_workflow()
    assert sorted(row[3] for row in ledger(stage)) == ["cancelled", "provider_overloaded"]
    invariants.check_invariants(stage)


def test_requests_that_failed_before_somebody_took_over_keep_their_rows(stage: Stage) -> None:
    stage.start_turn()

    def takes_over() -> None:
        stage.script_replies("Hello.")
        stage.advance_turn(newer, RecordingConnection())

    older, newer = stage.make_invocation(), stage.make_invocation()
    stage.script_replies([make_provider_error()], [TextDelta(text="Hel"), takes_over, *reply_with_text("late")])
    stage.advance_turn(older)
    outcomes = [(row[1], row[2], row[3]) for row in ledger(stage)]
    assert outcomes == [(1, 0, "died"), (1, 1, "provider_overloaded"), (2, 1, "ok")]
    invariants.check_invariants(stage)


def test_a_turn_whose_execution_is_gone_accounts_for_the_request_it_leaves(stage: Stage) -> None:
    stage.start_turn()
    stage.script_replies([TextDelta(text="Hel"), ProcessDied()])
    with pytest.raises(ProcessDied):
        stage.advance_turn()
    stage.recover_turn(has_execution_failed=True)
    assert ledger(stage) == [(1, 1, 0, "error", True, False)]
    invariants.check_invariants(stage)


@pytest.mark.parametrize("when", ["before", "asking", "calls", "after"])
def test_ending_a_turn_that_asks_nobody_costs_nothing_more(stage: Stage, when: str) -> None:
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
def test_a_commit_whose_answer_was_lost_writes_its_row_once(stage: Stage, event: str) -> None:
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


def test_a_dead_requests_prompt_is_at_least_what_the_round_before_filled(stage: Stage) -> None:
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


def test_a_price_makes_costs_exact_and_the_same_everywhere(stage: Stage) -> None:
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


def test_a_request_nobody_can_price_is_told_apart_from_one_that_costs_nothing(stage: Stage) -> None:
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


def test_a_dead_request_of_a_model_without_a_price_is_one_nobody_can_price(stage: Stage) -> None:
    stage.start_turn()
    stage.script_replies([TextDelta(text="Hel"), stage.cancel_turn, *reply_with_text("late")])
    stage.run_workflow()
    assert [row["priced"] for row in stage.ledger_rows()] == [False]


def test_totals_of_a_conversation_grow_turn_by_turn_and_its_context_is_the_last_ones(stage: Stage) -> None:
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


def test_a_reply_whose_tokens_are_not_known_is_flagged(stage: Stage) -> None:
    stage.start_turn()
    stage.script_replies(
        [ModelResponse(blocks=(), stop=FinishReason.END, tokens=TokenUsage(prompt=3), tokens_known=False)]
    )
    stage.run_workflow()
    assert ledger(stage) == [(1, 1, 1, "ok", True, True)]
