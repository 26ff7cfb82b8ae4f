"""Budgets of turns: a turn is refused before it starts, ended between rounds, and settled however it ends."""

import contextlib
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ConnectionClosedError

from fermata.aws.dynamodb_items_and_writes import Update
from fermata.conversations import conversation_store
from fermata.credentials import credential_store
from fermata.domain.errors import Conflict, PaymentRequired
from fermata.domain.model_io import TextDelta, TokenUsage
from fermata.pricing import catalogue
from fermata.pricing.catalogue import CatalogueModel, PriceCatalogue
from fermata.pricing.token_cost import Price
from fermata.turns.end.stop_turn import cancel_turn
from fermata.turns.round.begin_round import begin_round
from fermata.turns.round.run_turn_steps import open_turn_context
from fermata.turns.round.turn_context import TurnContext
from fermata.usage.budgets.budget_limits import BudgetLimits, Budgets, set_budgets
from fermata.usage.budgets.budget_status import load_budget_status
from tests.faults import FaultScript, ProcessDied, raise_connection_error
from tests.quick_suite_samples import sample_for_quick_suite
from tests.resources import TestClock
from tests.unit.turns.conftest import MakeStage, clock, shared_resources, stage, staged
from tests.unit.turns.stage import OK, Stage, make_provider_error, reply_with_calls, reply_with_text, tool_call_block
from tests.unit.usage.stored_ledger import read_turn_end_row

__all__ = ["clock", "shared_resources", "stage", "staged"]

INSERT = tool_call_block("insertHtml", parentId="p", html="<p></p>")
REQUEST_COST_USD = Decimal("0.13")
"""Slightly more than a request may cost here: 8,192 completion tokens at 15 USD per million."""


def set_price_and_budget(stage: Stage, daily: Any) -> Stage:
    stage.set_price(input_per_mtok=3, output_per_mtok=15)
    set_budgets(stage.resources, stage.caller, Budgets(tenant=BudgetLimits(daily_usd=Decimal(str(daily)))))
    return stage


def read_today(stage: Stage) -> dict[str, Any]:
    today: dict[str, Any] = load_budget_status(stage.resources, stage.caller.tenant)["tenant"]["today"]
    return today


def test_a_turn_that_the_budget_does_not_cover_is_refused_and_leaves_no_trace(stage: Stage) -> None:
    set_price_and_budget(stage, "0.05")
    with pytest.raises(PaymentRequired, match=r"has \$0\.05 left, and this request may take \$0\.12"):
        stage.start_turn()
    assert stage.load_messages() == []
    assert stage.claim() is None
    assert read_today(stage)["heldUsd"] == 0


def test_a_turn_within_the_budget_reserves_when_it_starts_and_pays_its_cost_when_it_ends(stage: Stage) -> None:
    set_price_and_budget(stage, 1)
    stage.start_turn()
    assert read_today(stage)["heldUsd"] > 0.12
    stage.script_replies("Hello.")
    assert stage.run_workflow() == "finished"
    assert read_today(stage)["heldUsd"] == 0
    assert Decimal(str(read_today(stage)["spentUsd"])) == stage.ledger_rows()[0]["cost"] == Decimal("0.000105")


def test_the_hold_suffices_when_the_whole_prompt_is_written_into_a_cache(stage: Stage) -> None:
    def start_and_measure_hold(**rates: Any) -> Decimal:
        stage.set_price(input_per_mtok=100, output_per_mtok=0, **rates)
        stage.resources.cache.invalidate("catalogue")
        stage.new_conversation()
        before = Decimal(str(read_today(stage)["heldUsd"]))
        stage.start_turn()
        return Decimal(str(read_today(stage)["heldUsd"])) - before

    set_price_and_budget(stage, 1_000)
    with_cache = start_and_measure_hold(cache_write_per_mtok=125, cache_read_per_mtok=10)
    assert with_cache == start_and_measure_hold() * Decimal("1.25")


def test_a_budget_holds_for_every_model_of_openrouter(stage: Stage) -> None:
    use_openrouter(stage, "google/gemini-3")
    set_budgets(stage.resources, stage.caller, Budgets(tenant=BudgetLimits(daily_usd=Decimal("0.05"))))
    with pytest.raises(PaymentRequired, match=r"has \$0\.05 left, and this request may take \$0\.25"):
        stage.start_turn()


def use_openrouter(stage: Stage, model: str) -> None:
    """Begin a conversation with a model of OpenRouter that has the usual price of the stage's model."""
    credential = credential_store.create_credential(
        stage.resources, stage.caller, "openrouter", "apiKey", "Router", "sk-or-1"
    )
    listed = CatalogueModel(price=Price(input_per_mtok=Decimal(3), output_per_mtok=Decimal(15)))
    catalogue.store_catalogue(
        stage.resources, PriceCatalogue(refreshed_at=1, priced_models={}, openrouter_models={model: listed})
    )
    stage.driver.provider = "openrouter"
    stage.conversation = conversation_store.create_conversation(
        stage.resources, stage.caller, "site", None, credential.id, model
    )


def test_a_turn_with_an_unpriced_model_is_refused_under_a_budget_and_leaves_no_trace(stage: Stage) -> None:
    set_budgets(stage.resources, stage.caller, Budgets(tenant=BudgetLimits(daily_usd=Decimal(100))))
    with pytest.raises(PaymentRequired, match="price of the model model-1 is not known"):
        stage.start_turn()
    assert stage.load_messages() == []


def test_an_unpriced_model_may_count_at_the_dearest_price(staged: MakeStage) -> None:
    stage = staged(unpriced_models="dearest")
    use_openrouter(stage, "google/gemini-3")
    stage.conversation = conversation_store.create_conversation(
        stage.resources, stage.caller, "site", None, stage.conversation.credential_id, "brand/new"
    )
    set_budgets(stage.resources, stage.caller, Budgets(tenant=BudgetLimits(daily_usd=Decimal(1))))
    stage.start_turn()
    assert read_today(stage)["heldUsd"] > 0.12
    stage.script_replies("Hello.")
    assert stage.run_workflow() == "finished"
    assert (read_today(stage)["heldUsd"], read_today(stage)["spentUsd"]) == (0, 0.000105)
    [row] = stage.ledger_rows()
    assert (row["cost"], row["priced"]) == (0, False)


def test_a_hold_of_one_turn_may_leave_too_little_for_another(staged: MakeStage) -> None:
    stage = set_price_and_budget(staged(), REQUEST_COST_USD + Decimal("0.01"))
    stage.start_turn()
    stage.new_conversation()
    with pytest.raises(PaymentRequired, match="is held for requests under way"):
        stage.start_turn()


def test_a_turn_ends_when_the_budget_does_not_cover_its_next_round_and_keeps_its_edits(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    set_price_and_budget(stage, REQUEST_COST_USD)
    stage.start_turn()
    stage.script_replies([*reply_with_calls(INSERT)[:-1], spend_meanwhile(stage, "0.1"), reply_with_calls(INSERT)[-1]])
    stage.run_workflow()
    stage.answer_request(OK)
    assert stage.run_workflow() == "finished"
    (terminal,) = stage.terminal_events()
    assert (terminal.type, getattr(terminal, "code", None)) == ("error", "budget_exhausted")
    assert "It renews at" in getattr(terminal, "message", "")
    assert len(stage.driver.requests) == 1
    assert read_today(stage)["heldUsd"] == 0
    assert read_turn_end_row(stage)["billable"] is True
    [refusal] = [vars(record) for record in caplog.records if getattr(record, "security", False)]
    assert (refusal["event"], refusal["reason"]) == ("security.limit_reached", "budget")


def spend_meanwhile(stage: Stage, amount: str) -> Any:
    """Return a function that lets another request of the tenant cost this amount."""

    def spend() -> None:
        account = f"t#{stage.caller.tenant}#budget#tenant"
        month = stage.resources.clock.now_iso()[:7]
        day = f"spent_{stage.resources.clock.now_iso()[8:10]}"
        update = Update(
            stage.resources.settings.bridges_table,
            account,
            month,
            "ADD spent :usd, #day :usd",
            {":usd": Decimal(amount)},
            names={"#day": day},
        )
        stage.resources.tables.write_items(update)

    return spend


def test_a_turn_without_a_request_releases_its_hold(stage: Stage) -> None:
    set_price_and_budget(stage, 1)
    stage.start_turn()
    stage.cancel_turn()
    assert read_today(stage) == {"spentUsd": 0, "heldUsd": 0, "leftUsd": 1}


@pytest.fixture
def faults(stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FaultScript]:
    script = FaultScript(stage.resources, tmp_path, monkeypatch)
    yield script
    script.close()


def test_a_start_that_loses_to_another_holds_nothing(stage: Stage, faults: FaultScript) -> None:
    set_price_and_budget(stage, 1)
    pk, meta = f"t#{stage.caller.tenant}#c#{stage.conversation.id}", "meta"
    claim = Update(stage.resources.settings.conversations_table, pk, meta, "SET claim = :other", {":other": "other"})
    faults.interrupt("dynamodb.TransactWriteItems", lambda: stage.resources.tables.write_items(claim))
    with pytest.raises(Conflict, match="already generating"):
        stage.start_turn()
    assert faults.is_spent
    assert read_today(stage) == {"spentUsd": 0, "heldUsd": 0, "leftUsd": 1}


def test_starts_that_meet_trouble_hold_nothing_so_that_a_tight_budget_stays_usable(
    stage: Stage, faults: FaultScript
) -> None:
    set_price_and_budget(stage, REQUEST_COST_USD)
    before = faults.call_count
    stage.start_turn()
    calls_of_a_start = faults.call_count - before
    stage.cancel_turn()
    for number in range(1, calls_of_a_start + 1):
        stage.new_conversation()
        faults.interrupt_at_call(number, raise_connection_error)
        try:
            stage.start_turn()
        except ConnectionClosedError:
            faults.clear()
            assert read_today(stage)["heldUsd"] == 0, f"call {number}"
        else:
            faults.clear()
            stage.cancel_turn()
    stage.new_conversation()
    stage.start_turn()
    assert read_today(stage)["heldUsd"] > 0.12


def test_a_start_whose_account_changes_meanwhile_holds_what_then_remains(stage: Stage, faults: FaultScript) -> None:
    set_price_and_budget(stage, "0.2")
    faults.interrupt("dynamodb.TransactWriteItems", spend_meanwhile(stage, "0.07"))
    stage.start_turn()
    assert faults.is_spent
    today = read_today(stage)
    assert (today["spentUsd"], today["heldUsd"] > 0.12) == (0.07, True)


def test_a_start_whose_account_is_spent_meanwhile_is_refused_and_leaves_no_trace(
    stage: Stage, faults: FaultScript
) -> None:
    set_price_and_budget(stage, "0.2")
    faults.interrupt("dynamodb.TransactWriteItems", spend_meanwhile(stage, "0.1"))
    with pytest.raises(PaymentRequired):
        stage.start_turn()
    assert faults.is_spent
    assert stage.load_messages() == []
    assert stage.claim() is None
    assert read_today(stage)["heldUsd"] == 0


def die() -> None:
    raise ProcessDied


def assert_accounts_agree_with_ledger(stage: Stage) -> None:
    today = read_today(stage)
    assert Decimal(str(today["spentUsd"])) == sum(row["cost"] for row in stage.ledger_rows())
    assert today["heldUsd"] == 0


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("number", sample_for_quick_suite(range(1, 31), every=7))
def test_the_accounts_agree_with_the_ledger_whichever_call_of_the_second_round_a_function_dies_at(
    stage: Stage, clock: TestClock, faults: FaultScript, number: int, when: str
) -> None:
    set_price_and_budget(stage, 1)
    stage.start_turn()
    stage.script_replies(reply_with_calls(INSERT))
    stage.run_workflow()
    stage.answer_request(OK)
    stage.script_replies("Done.", "Done.", "Done.")
    faults.interrupt_at_call(number, die, when=when)
    for _ in range(2):
        with contextlib.suppress(ProcessDied):
            stage.advance_turn()
    faults.clear()
    clock.advance(15)
    stage.run_workflow()
    assert len(stage.terminal_events()) == 1
    assert_accounts_agree_with_ledger(stage)


def test_two_functions_that_die_before_their_requests_leave_the_accounts_as_the_ledger(
    stage: Stage, faults: FaultScript
) -> None:
    """The rows of dead requests that were never reserved find the hold of the request before settled."""
    set_price_and_budget(stage, 1)
    stage.start_turn()
    stage.script_replies([TextDelta(text="x" * 4_000), KeyboardInterrupt()])
    with pytest.raises(KeyboardInterrupt):
        stage.advance_turn()
    # The hold's row is read when rows are settled, and again when the next request is reserved.
    faults.interrupt("dynamodb.BatchGetItem", die, contains="hold")
    with pytest.raises(ProcessDied):
        stage.advance_turn()
    stage.script_replies("At last.")
    assert stage.run_workflow() == "finished"
    assert_accounts_agree_with_ledger(stage)


def test_a_request_whose_function_died_is_settled_with_its_estimate(stage: Stage) -> None:
    set_price_and_budget(stage, 1)
    stage.start_turn()
    stage.script_replies([KeyboardInterrupt()])
    with pytest.raises(KeyboardInterrupt):
        stage.advance_turn()
    stage.script_replies("At last.")
    assert stage.run_workflow() == "finished"
    assert read_today(stage)["heldUsd"] == 0
    assert Decimal(str(read_today(stage)["spentUsd"])) == sum(row["cost"] for row in stage.ledger_rows())


def test_a_canceled_request_is_settled_with_its_estimate(stage: Stage) -> None:
    set_price_and_budget(stage, 1)
    turn = stage.start_turn()
    stage.script_replies([TextDelta(text="x" * 400), lambda: cancel_turn(stage.resources, stage.caller, turn.id)])
    stage.advance_turn()
    (row,) = stage.ledger_rows()
    assert (row["estimated"], row["billable"]) == (True, True)
    assert Decimal(str(read_today(stage)["spentUsd"])) == row["cost"] > 0
    assert read_today(stage)["heldUsd"] == 0


def test_failed_requests_of_a_canceled_round_are_charged_once(stage: Stage) -> None:
    set_price_and_budget(stage, 1)
    turn = stage.start_turn()
    failure = make_provider_error(tokens=TokenUsage(prompt=1_000))
    text = [TextDelta(text="x" * 400), lambda: cancel_turn(stage.resources, stage.caller, turn.id)]
    stage.script_replies([failure], text)
    stage.advance_turn()
    assert [row["cost"] > 0 for row in stage.ledger_rows()] == [True, True]
    assert_accounts_agree_with_ledger(stage)


def test_a_turn_without_a_budget_reads_no_budgets_after_its_start(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.start_turn()

    def fail(*_: Any) -> None:
        raise AssertionError("budgets were used")

    monkeypatch.setattr("fermata.usage.budgets.holds.reserve_budget_and_commit", fail)
    monkeypatch.setattr("fermata.usage.budgets.holds.build_settlement_writes", fail)
    stage.script_replies(reply_with_calls(INSERT), "Done.")
    stage.run_workflow()
    stage.answer_request(OK)
    assert stage.run_workflow() == "finished"


def wait_for_second_round(stage: Stage, *replies: Any) -> None:
    set_price_and_budget(stage, 1)
    stage.start_turn()
    stage.script_replies(reply_with_calls(INSERT), *(replies or ("Done.",)))
    stage.run_workflow()
    stage.answer_request(OK)


@pytest.mark.parametrize("operation", ["BatchGetItem", "TransactWriteItems"])
def test_a_turn_canceled_before_its_hold_holds_nothing_and_sends_no_request(stage: Stage, operation: str) -> None:
    wait_for_second_round(stage)
    stage.faults.interrupt(f"dynamodb.{operation}", stage.cancel_turn, contains="budget#tenant")
    assert stage.run_workflow() == "finished"
    assert stage.faults.is_spent
    assert len(stage.driver.requests) == len(stage.ledger_rows()) == 1
    assert read_today(stage)["heldUsd"] == 0


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_function_that_dies_while_it_holds_a_budget_leaves_no_hold_behind(stage: Stage, when: str) -> None:
    wait_for_second_round(stage)
    stage.faults.kill_process("dynamodb.TransactWriteItems", contains="requestStarted", when=when)
    with pytest.raises(ProcessDied):
        stage.run_workflow()
    stage.script_replies("Done.")
    assert stage.run_workflow() == "finished"
    outcomes = [row["outcome"] for row in stage.ledger_rows()]
    assert outcomes == (["ok", "ok"] if when == "before" else ["ok", "died", "ok"])
    assert read_today(stage)["heldUsd"] == 0
    assert Decimal(str(read_today(stage)["spentUsd"])) == sum(row["cost"] for row in stage.ledger_rows())


def test_a_request_that_is_sent_while_a_successor_takes_the_round_is_in_the_ledger(stage: Stage) -> None:
    seen_unsent: list[TurnContext] = []

    def read_before_it_is_sent() -> None:
        context = open_turn_context(stage.resources, newer)
        assert context is not None
        seen_unsent.append(context)

    replies = [TextDelta(text="Hel"), lambda: begin_round(seen_unsent[0]), *reply_with_text("lo.")]
    wait_for_second_round(stage, replies, "Done.")
    older, newer = stage.make_invocation(), stage.make_invocation()
    stage.faults.interrupt("dynamodb.TransactWriteItems", read_before_it_is_sent, contains="requestStarted")
    stage.advance_turn(older)
    stage.advance_turn(newer)
    assert [row["outcome"] for row in stage.ledger_rows()] == ["ok", "died", "ok"]
    assert read_today(stage)["heldUsd"] == 0
    assert Decimal(str(read_today(stage)["spentUsd"])) == sum(row["cost"] for row in stage.ledger_rows())


def test_a_request_that_is_repeated_after_a_failure_is_held_again_and_charged_once(stage: Stage) -> None:
    set_price_and_budget(stage, 1)
    stage.start_turn()
    held: list[float] = []
    note_hold = lambda: held.append(read_today(stage)["heldUsd"])  # noqa: E731
    stage.script_replies([make_provider_error()], [note_hold, *reply_with_text("Hello.")])
    assert stage.run_workflow() == "finished"
    assert held[0] > 0.12
    assert read_today(stage)["heldUsd"] == 0
    assert Decimal(str(read_today(stage)["spentUsd"])) == sum(row["cost"] for row in stage.ledger_rows())


def test_a_request_that_no_budget_covers_has_no_ledger_row(stage: Stage) -> None:
    set_price_and_budget(stage, REQUEST_COST_USD)
    stage.start_turn()
    stage.script_replies([spend_meanwhile(stage, "0.13"), make_provider_error()])
    assert stage.run_workflow() == "finished"
    assert [getattr(event, "code", None) for event in stage.terminal_events()] == ["budget_exhausted"]
    assert [row["outcome"] for row in stage.ledger_rows()] == ["provider_overloaded"]
    assert len(stage.driver.requests) == 1
