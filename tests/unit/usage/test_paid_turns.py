"""Turns and their money: refused before they begin, ended in the middle, settled however they end."""

from decimal import Decimal
from typing import Any

import pytest

from fermata.aws import signals
from fermata.aws.dynamo import Update
from fermata.conversations import threads
from fermata.credentials import keyring
from fermata.pricing import catalogue
from fermata.pricing.catalogue import Catalogue, Listed
from fermata.pricing.prices import Price
from fermata.turns import ending
from fermata.usage import ledger
from fermata.usage.audit import audit
from fermata.usage.balance import balance
from fermata.usage.budgets import Budgets, Limits, set_budgets
from fermata.usage.labels import labels_of
from fermata.words.errors import Conflict, PaymentRequired, ProviderError
from fermata.words.model import TextDelta
from tests.desk import TestClock
from tests.unit.turns.conftest import MakeStage, clock, parts, stage, staged
from tests.unit.turns.stage import OK, Stage, call, calls, failure
from tests.unit.usage.spending import roll_up

__all__ = ["clock", "parts", "stage", "staged"]

INSERT = call("insertHtml", parentId="p", html="<p></p>")
REQUEST = Decimal("0.13")
"""A little more than a request may cost here: 8,192 tokens of answer, at 15 USD per million."""


def priced(stage: Stage, daily: Any) -> Stage:
    stage.price(input_per_mtok=3, output_per_mtok=15)
    set_budgets(stage.desk, stage.caller, Budgets(tenant=Limits(daily_usd=Decimal(str(daily)))))
    return stage


def today(stage: Stage) -> dict[str, Any]:
    found: dict[str, Any] = balance(stage.desk, stage.caller.tenant)["tenant"]["today"]
    return found


def end_row(stage: Stage) -> dict[str, Any]:
    (row,) = [row for row in rows(stage) if row["sk"] == ledger.END]
    return row


def rows(stage: Stage) -> list[dict[str, Any]]:
    return list(ledger.between(stage.desk, stage.caller.tenant, "2026-01", "2030-01"))


def test_a_turn_that_the_budget_does_not_cover_is_refused_and_leaves_no_trace(stage: Stage) -> None:
    priced(stage, "0.05")
    with pytest.raises(PaymentRequired, match=r"has \$0\.05 left, and this request may take \$0\.12"):
        stage.start()
    assert stage.messages() == []
    assert stage.claim() is None
    assert today(stage)["heldUsd"] == 0


def test_a_turn_within_the_budget_is_held_for_when_it_starts_and_costs_what_it_costs(stage: Stage) -> None:
    priced(stage, 1)
    stage.start()
    assert today(stage)["heldUsd"] > 0.12
    stage.says("Hello.")
    assert stage.run() == "finished"
    assert today(stage)["heldUsd"] == 0
    assert Decimal(str(today(stage)["spentUsd"])) == stage.ledger()[0]["cost"] == Decimal("0.000105")


def test_what_is_held_suffices_when_the_whole_prompt_is_written_into_a_cache(stage: Stage) -> None:
    def held(**rates: Any) -> Decimal:
        stage.price(input_per_mtok=100, output_per_mtok=0, **rates)
        stage.desk.memory.forget("catalogue")
        stage.new_conversation()
        before = Decimal(str(today(stage)["heldUsd"]))
        stage.start()
        return Decimal(str(today(stage)["heldUsd"])) - before

    priced(stage, 1_000)
    assert held(cache_write_per_mtok=125, cache_read_per_mtok=10) == held() * Decimal("1.25")


def test_a_budget_holds_for_every_model_of_openrouter(stage: Stage) -> None:
    use_router(stage, "google/gemini-3")
    set_budgets(stage.desk, stage.caller, Budgets(tenant=Limits(daily_usd=Decimal("0.05"))))
    with pytest.raises(PaymentRequired, match=r"has \$0\.05 left, and this request may take \$0\.25"):
        stage.start()


def use_router(stage: Stage, model: str) -> None:
    """The next conversation is with a model of OpenRouter, which costs there as much as the stage's model usually."""
    router = keyring.create(stage.desk, stage.caller, "openrouter", "apiKey", "Router", "sk-or-1")
    listed = Listed(price=Price(input_per_mtok=Decimal(3), output_per_mtok=Decimal(15)))
    catalogue.keep(stage.desk, Catalogue(refreshed=1, offers={}, routed={model: listed}))
    stage.driver.provider = "openrouter"
    stage.conversation = threads.create(stage.desk, stage.caller, "site", None, router.id, model)


def test_while_one_turn_is_held_for_another_has_to_wait(staged: MakeStage) -> None:
    stage = priced(staged(), REQUEST + Decimal("0.01"))
    stage.start()
    stage.new_conversation()
    with pytest.raises(PaymentRequired, match="is held for requests under way"):
        stage.start()


def test_a_turn_whose_next_round_is_not_covered_ends_and_what_it_did_stays(stage: Stage) -> None:
    priced(stage, REQUEST)
    stage.start()
    stage.says([*calls(INSERT)[:-1], spending(stage, "0.1"), calls(INSERT)[-1]])
    stage.run()
    stage.answer(OK)
    assert stage.run() == "finished"
    (terminal,) = stage.terminals()
    assert (terminal.type, getattr(terminal, "code", None)) == ("error", "budget_exhausted")
    assert "It renews at" in getattr(terminal, "message", "")
    assert len(stage.driver.asks) == 1
    assert today(stage)["heldUsd"] == 0
    assert end_row(stage)["billable"] is True


def spending(stage: Stage, amount: str) -> Any:
    """Somebody else's request costs that much meanwhile."""

    def spend() -> None:
        account = f"t#{stage.caller.tenant}#budget#tenant"
        month = stage.desk.clock.instant()[:7]
        day = f"spent_{stage.desk.clock.instant()[8:10]}"
        update = Update(
            stage.desk.settings.bridges_table,
            account,
            month,
            "ADD spent :usd, #day :usd",
            {":usd": Decimal(amount)},
            names={"#day": day},
        )
        stage.desk.tables.write(update)

    return spend


def test_a_turn_that_never_asked_gives_back_what_was_held_for_it(stage: Stage) -> None:
    priced(stage, 1)
    stage.start()
    stage.cancel()
    assert today(stage) == {"spentUsd": 0, "heldUsd": 0, "leftUsd": 1}


def test_a_start_that_loses_to_another_gives_back_what_was_held_for_it(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    priced(stage, 1)

    def refuse(*_: Any) -> None:
        raise Conflict("Somebody else was faster.")

    monkeypatch.setattr("fermata.turns.starting._commit", refuse)
    with pytest.raises(Conflict):
        stage.start()
    assert today(stage)["heldUsd"] == 0


def test_a_request_whose_function_died_is_settled_by_its_estimate(stage: Stage) -> None:
    priced(stage, 1)
    stage.start()
    stage.says([KeyboardInterrupt()])
    with pytest.raises(KeyboardInterrupt):
        stage.advance()
    stage.says("At last.")
    assert stage.run() == "finished"
    assert today(stage)["heldUsd"] == 0
    assert Decimal(str(today(stage)["spentUsd"])) == sum(row["cost"] for row in stage.ledger())


def test_a_request_that_was_cut_off_by_a_cancel_is_settled_by_its_estimate(stage: Stage) -> None:
    """Scenario CO8."""
    priced(stage, 1)
    turn = stage.start()
    stage.says([TextDelta(text="x" * 400), lambda: ending.cancel(stage.desk, stage.caller, turn.id)])
    stage.advance()
    (row,) = stage.ledger()
    assert (row["estimated"], row["billable"]) == (True, True)
    assert Decimal(str(today(stage)["spentUsd"])) == row["cost"] > 0
    assert today(stage)["heldUsd"] == 0


def test_without_a_budget_a_turn_reads_nothing_of_budgets_after_its_start(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.start()

    def nobody(*_: Any) -> None:
        raise AssertionError("nobody asks")

    monkeypatch.setattr("fermata.usage.holds.reserve", nobody)
    monkeypatch.setattr("fermata.usage.booking.settle", nobody)
    stage.says(calls(INSERT), "Done.")
    stage.run()
    stage.answer(OK)
    assert stage.run() == "finished"


def test_a_turn_says_in_the_ledger_how_it_ended(stage: Stage) -> None:
    stage.start()
    stage.says("Hello.")
    stage.run()
    row = end_row(stage)
    assert (row["how"], row["billable"], row["rounds"], row["turn"]) == ("done", True, 1, stage.turn.id)


def test_a_turn_that_ended_in_a_providers_error_is_nobodys_to_pay(stage: Stage) -> None:
    """Scenario CO10: what was used before stays in the books, and is not billable."""
    stage.price(input_per_mtok=3, output_per_mtok=15)
    stage.start()
    stage.says(calls(INSERT), [failure("provider_request", retryable=False)])
    stage.run()
    stage.answer(OK)
    stage.run()
    assert (end_row(stage)["code"], end_row(stage)["billable"]) == ("provider_request", False)
    roll_up(stage.desk, rows(stage), stage.caller.tenant)
    totals = audit(stage.desk, stage.caller.tenant, with_billable=True)["totals"]
    assert (totals["costUsd"], totals["billableCostUsd"]) == (0.000105, 0)


def test_a_turn_that_its_browser_left_alone_is_to_be_paid(stage: Stage, clock: TestClock) -> None:
    stage.start()
    stage.says(calls(INSERT))
    stage.run()
    clock.go_on(120)
    stage.run()
    assert (end_row(stage)["code"], end_row(stage)["billable"]) == ("no_answer", True)


@pytest.mark.parametrize(
    ("ends", "event", "how"),
    [
        ("done", "ai.chat.completed", "done"),
        ("cancel", "ai.chat.completed", "cancelled"),
        ("fail", "ai.chat.failed", "error"),
    ],
)
def test_the_audit_hears_when_a_turn_starts_and_how_it_ends(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, ends: str, event: str, how: str
) -> None:
    told: list[dict[str, Any]] = []
    monkeypatch.setattr(signals, "audit", lambda event, **facts: told.append({"event": event, **facts}))
    turn = stage.start("A secret plan")
    if ends == "cancel":
        stage.cancel()
    else:
        stage.says("Hello." if ends == "done" else [failure(retryable=False)])
        stage.run()
    started, ended = told
    assert (started["event"], ended["event"], ended["how"]) == ("ai.chat.started", event, how)
    assert {started["turn"], ended["turn"]} == {turn.id}
    assert {started["tenant"], ended["tenant"]} == {"bakery"}
    assert "secret plan" not in str(told)


def test_the_last_line_of_a_turn_says_what_it_used_and_why_it_failed(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[dict[str, Any]] = []
    monkeypatch.setattr(signals, "audit", lambda event, **facts: told.append({"event": event, **facts}))
    stage.price(input_per_mtok=3, output_per_mtok=15)
    stage.start()
    broken = ProviderError("provider_request", "No. " * 200, retryable=False)
    stage.says(calls(INSERT), [broken])
    stage.run()
    stage.answer(OK)
    stage.run()
    facts = {name: told[-1][name] for name in ("scope", "provider", "model", "prompt", "completion", "cost", "code")}
    assert facts == {
        "scope": "site",
        "provider": "anthropic",
        "model": stage.turn.model,
        "prompt": 10,
        "completion": 5,
        "cost": "0.000105",
        "code": "provider_request",
    }
    assert told[-1]["error"] == broken.message[:200]


def test_a_user_is_known_in_the_audit_by_the_name_in_the_token(staged: MakeStage) -> None:
    stage = staged()
    stage.caller = stage.caller.model_copy(update={"label": "Ada Lovelace"})
    stage.start()
    stage.says("Hello.")
    stage.run()
    roll_up(stage.desk, rows(stage), stage.caller.tenant)
    assert labels_of(stage.desk, stage.caller.tenant) == {"ada": "Ada Lovelace"}
    assert audit(stage.desk, stage.caller.tenant)["byUser"][0]["userLabel"] == "Ada Lovelace"
