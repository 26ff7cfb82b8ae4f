"""Ledger (design §4): one row per provider request, written in the transaction that ends it, exactly once."""

from decimal import Decimal

import pytest

from fermata.words.events import UsageReport
from fermata.words.model import Reply, Stop, TextDelta, Tokens
from tests.seam import Death
from tests.unit.turns import truth
from tests.unit.turns.machine import Machine
from tests.unit.turns.scenes import asking
from tests.unit.turns.stage import OK, HandLine, Stage, call, calls, failure, says

Row = tuple[int, int, int, str, bool, bool]


def ledger(stage: Stage) -> list[Row]:
    """(round, attempt, try, outcome, estimated, billable) of every row."""
    names = ("round", "attempt", "tried", "outcome", "estimated", "billable")
    return [tuple(row[name] for name in names) for row in stage.ledger()]


def usage(stage: Stage) -> UsageReport:
    [told] = [event for event in stage.events() if isinstance(event, UsageReport)]
    return told


def test_every_request_of_a_turn_has_its_row(stage: Stage) -> None:
    stage.start()
    stage.says(calls(call("list_documents")), calls(call("deleteNode", nodeId="n")), "Done.")
    stage.run()
    stage.answer(OK)
    stage.run()
    assert ledger(stage) == [(number, 1, 1, "ok", False, True) for number in (1, 2, 3)]
    assert usage(stage).prompt_tokens == 30
    truth.check(stage)


def test_a_row_says_whose_request_it_was_and_what_it_used(stage: Stage) -> None:
    stage.start()
    tokens = Tokens(prompt=7, completion=5, cache_read=100, cache_creation=20)
    stage.says([Reply(blocks=(), stop=Stop.END, tokens=tokens)])
    stage.run()
    [row] = stage.ledger()
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
    truth.check(stage)


def test_failed_requests_have_rows_too_and_are_not_billed(stage: Stage) -> None:
    stage.start()
    stage.says([failure()], [failure("provider_quota")], "Hello.")
    stage.run()
    assert ledger(stage) == [
        (1, 1, 1, "provider_overloaded", False, False),
        (1, 1, 2, "provider_quota", False, False),
        (1, 1, 3, "ok", False, True),
    ]
    truth.check(stage)


def test_a_request_that_broke_off_is_charged_what_its_provider_told_and_what_was_shown(stage: Stage) -> None:
    stage.start()
    told = failure(tokens=Tokens(prompt=50, completion=1, cache_read=9))
    stage.says([TextDelta(text="x" * 400), told], "Hello.")
    stage.run()
    broken, whole = stage.ledger()
    assert [broken[name] for name in ("prompt", "completion", "cacheRead", "estimated")] == [50, 100, 9, True]
    assert (broken["attempt"], whole["attempt"]) == (1, 2)
    assert usage(stage).prompt_tokens == 60
    truth.check(stage)


def test_a_request_that_broke_off_untold_is_estimated(stage: Stage) -> None:
    stage.start("x" * 4000)
    stage.says([TextDelta(text="x" * 400), failure(retryable=False)])
    stage.run()
    [row] = stage.ledger()
    assert (row["completion"], row["estimated"], row["billable"]) == (100, True, False)
    assert row["prompt"] > 1000
    truth.check(stage)


def test_a_request_whose_function_died_is_accounted_for_by_the_next_attempt(stage: Stage) -> None:
    stage.start()
    stage.says([TextDelta(text="x" * 400), Death()], "Hello.")
    assert Machine(stage).run() == "Finished"
    assert ledger(stage) == [(1, 1, 0, "died", True, False), (1, 2, 1, "ok", False, True)]
    assert stage.ledger()[0]["completion"] == 100
    truth.check(stage)


def test_a_request_that_was_cancelled_half_way_is_recorded_and_flagged_as_estimated(stage: Stage) -> None:
    stage.start("x" * 4000)
    stage.says([TextDelta(text="x" * 400), stage.cancel, *says("late")])
    stage.run()
    [row] = stage.ledger()
    assert (row["outcome"], row["estimated"], row["billable"], row["completion"]) == ("cancelled", True, True, 100)
    assert row["prompt"] > 1000
    assert usage(stage).completion_tokens == 100
    truth.check(stage)


def test_requests_that_failed_before_a_cancel_keep_their_rows(stage: Stage) -> None:
    stage.start()
    stage.says([failure()], [TextDelta(text="Hel"), stage.cancel, *says("late")])
    stage.run()
    assert sorted(row[3] for row in ledger(stage)) == ["cancelled", "provider_overloaded"]
    truth.check(stage)


def test_requests_that_failed_before_somebody_took_over_keep_their_rows(stage: Stage) -> None:
    stage.start()

    def takes_over() -> None:
        stage.says("Hello.")
        stage.advance(newer, HandLine())

    older, newer = stage.wake(), stage.wake()
    stage.says([failure()], [TextDelta(text="Hel"), takes_over, *says("late")])
    stage.advance(older)
    outcomes = [(row[1], row[2], row[3]) for row in ledger(stage)]
    assert outcomes == [(1, 0, "died"), (1, 1, "provider_overloaded"), (2, 1, "ok")]
    truth.check(stage)


def test_a_turn_whose_execution_is_gone_accounts_for_the_request_it_leaves(stage: Stage) -> None:
    stage.start()
    stage.says([TextDelta(text="Hel"), Death()])
    with pytest.raises(Death):
        stage.advance()
    stage.recover(has_failed=True)
    assert ledger(stage) == [(1, 1, 0, "error", True, False)]
    truth.check(stage)


@pytest.mark.parametrize("when", ["before", "asking", "calls", "after"])
def test_ending_a_turn_that_asks_nobody_costs_nothing_more(stage: Stage, when: str) -> None:
    rows = {"before": 0, "asking": 1, "calls": 1, "after": 1}[when]
    if when == "before":
        stage.start()
        stage.cancel()
    elif when == "asking":
        stage.start()
        stage.says([stage.cancel, *says("Hello.")])
        stage.run()
    elif when == "calls":
        asking(stage, "deleteNode")
        stage.cancel()
    else:
        stage.start()
        stage.says("Hello.")
        stage.run()
        stage.cancel()
    assert len(stage.ledger()) == rows
    truth.check(stage)


@pytest.mark.parametrize("event", ["toolCall", "usage"])
def test_a_commit_whose_answer_was_lost_writes_its_row_once(stage: Stage, event: str) -> None:
    stage.start()
    stage.says(calls(call("list_documents")), "Done.")
    stage.seam.lose("dynamodb.TransactWriteItems", contains=event)
    stage.run()
    assert stage.seam.is_spent
    assert len(stage.ledger()) == 2
    truth.check(stage)


def test_a_row_is_never_overwritten(stage: Stage) -> None:
    stage.start()
    stage.says("Hello.")
    stage.run()
    [before] = stage.ledger()
    stage.advance()
    stage.recover(has_failed=True)
    assert stage.ledger() == [before]


def test_a_dead_requests_prompt_is_at_least_what_the_round_before_filled(stage: Stage) -> None:
    stage.start()
    big = Reply(blocks=(call("list_documents"),), stop=Stop.TOOL_CALLS, tokens=Tokens(prompt=5_000, cache_read=20_000))
    stage.says([big], [TextDelta(text="Hel"), stage.cancel, *says("late")])
    stage.run()
    assert stage.ledger()[-1]["prompt"] == 25_000
    truth.check(stage)


def test_a_price_makes_costs_exact_and_the_same_everywhere(stage: Stage) -> None:
    stage.price(input_per_mtok=Decimal("0.8"), output_per_mtok=Decimal(4), cache_read_per_mtok=Decimal("0.08"))
    stage.start()
    tokens = Tokens(prompt=4, completion=23, cache_read=2455)
    stage.says([Reply(blocks=(call("list_documents"),), stop=Stop.TOOL_CALLS, tokens=tokens)], "Done.")
    stage.run()
    rows = stage.ledger()
    assert rows[0]["cost"] == Decimal("0.0002916")
    assert rows[1]["cost"] == Decimal("0.000028")
    assert stage.thread().cost_usd_total == Decimal("0.0003196")
    truth.check(stage)


def test_a_request_nobody_can_price_is_told_apart_from_one_that_costs_nothing(stage: Stage) -> None:
    stage.start()
    free = Tokens(prompt=5, completion=5, reported_cost=Decimal(0))
    stage.says([Reply(blocks=(call("list_documents"),), stop=Stop.TOOL_CALLS, tokens=free)], [failure()], "Done.")
    stage.run()
    assert [(row["cost"], row["priced"]) for row in stage.ledger()] == [(0, True), (0, True), (0, False)]
    truth.check(stage)


def test_a_dead_request_of_a_model_without_a_price_is_one_nobody_can_price(stage: Stage) -> None:
    stage.start()
    stage.says([TextDelta(text="Hel"), stage.cancel, *says("late")])
    stage.run()
    assert [row["priced"] for row in stage.ledger()] == [False]


def test_totals_of_a_conversation_grow_turn_by_turn_and_its_context_is_the_last_ones(stage: Stage) -> None:
    for number in (1, 2, 3):
        stage.start(f"Prompt {number}")
        stage.says([Reply(blocks=(), stop=Stop.END, tokens=Tokens(prompt=10 * number, completion=1, cache_read=5))])
        stage.run()
    thread = stage.thread()
    assert (thread.prompt_tokens_total, thread.completion_tokens_total, thread.cache_read_tokens_total) == (60, 3, 15)
    assert thread.context_tokens == 35


def test_a_reply_whose_tokens_are_not_known_is_flagged(stage: Stage) -> None:
    stage.start()
    stage.says([Reply(blocks=(), stop=Stop.END, tokens=Tokens(prompt=3), tokens_known=False)])
    stage.run()
    assert ledger(stage) == [(1, 1, 1, "ok", True, True)]
