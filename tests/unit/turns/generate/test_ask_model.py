"""Requests to a model without a conversation: texts, objects, decisions, and what they cost."""

from decimal import Decimal
from typing import Any

import pytest

from fermata.domain.errors import (
    BadGateway,
    Conflict,
    InvalidRequest,
    PaymentRequired,
    ServiceUnavailable,
    Unprocessable,
)
from fermata.domain.model_decisions import DecisionQuestion
from fermata.domain.model_io import FinishReason, SamplingSettings
from fermata.domain.one_shot_generation import GenerateRequest
from fermata.domain.run_settings import OutputFormat
from fermata.turns.generate import ask_model
from fermata.turns.generate.ask_model import GeneratedAnswer, generate_answer
from fermata.turns.generate.decide import decide_questions
from fermata.usage.budgets.budget_limits import BudgetLimits, Budgets, set_budgets
from tests.faults import ProcessDied
from tests.unit.turns.stage import ADA, Stage, make_provider_error, reply_with_text

CITY = OutputFormat(json_schema={"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]})


@pytest.fixture(autouse=True)
def scripted(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ask_model, "get_provider", lambda _provider: stage.driver)


def ask(stage: Stage, *replies: Any, **members: Any) -> GeneratedAnswer:
    stage.script_replies(*replies)
    asked = GenerateRequest((("user", "Where?"),), credential=stage.credential.id, model="model-1", **members)
    return generate_answer(stage.resources, ADA, asked, stage.connection)


def decide(stage: Stage, state: Any, questions: dict[str, DecisionQuestion]) -> dict[str, Any]:
    asked = GenerateRequest(credential=stage.credential.id, model="model-1", state=state, questions=questions)
    return decide_questions(stage.resources, ADA, asked, stage.connection)


def list_ledger_rows(stage: Stage) -> list[dict[str, Any]]:
    rows = stage.resources.tables.query_index(
        stage.resources.settings.usage_table, "byTime", ("gpk", f"t#bakery#{stage.resources.clock.now_iso()[:7]}")
    )
    return sorted(rows, key=lambda row: str(row["sk"]))


def test_a_text_is_asked_for_with_its_settings(stage: Stage) -> None:
    answer = ask(stage, "In Bern.", system="Be short.", sampling=SamplingSettings(temperature=0), max_output_tokens=50)
    assert (answer.text, answer.value, answer.finish_reason) == ("In Bern.", None, "end")
    assert (answer.usage["inputTokens"], answer.usage["outputTokens"], answer.usage["totalTokens"]) == (10, 5, 15)
    [request] = stage.driver.requests
    assert (request.system, request.max_tokens, request.sampling.temperature) == ("Be short.", 50, 0)


def test_an_object_is_read_and_checked(stage: Stage) -> None:
    assert ask(stage, '```json\n{"city": "Bern"}\n```', output=CITY).value == {"city": "Bern"}


def test_an_object_that_breaks_the_schema_is_asked_for_once_more(stage: Stage) -> None:
    answer = ask(stage, "Bern.", '{"city": "Bern"}', output=CITY)
    assert answer.value == {"city": "Bern"}
    assert answer.usage["totalTokens"] == 30


def test_an_object_that_breaks_the_schema_twice_is_an_error(stage: Stage) -> None:
    with pytest.raises(Unprocessable, match="city"):
        ask(stage, "Bern.", "{}", output=CITY)
    assert len(stage.driver.requests) == 2


def test_every_request_is_in_the_ledger_once(stage: Stage) -> None:
    ask(stage, [make_provider_error("provider_overloaded")], "In Bern.")
    requests = [row for row in list_ledger_rows(stage) if "outcome" in row]
    assert [(row["outcome"], row["billable"]) for row in requests] == [("provider_overloaded", False), ("ok", True)]
    [end] = [row for row in list_ledger_rows(stage) if row["sk"] == "end"]
    assert (end["how"], end["billable"]) == ("done", True)


@pytest.mark.parametrize(
    ("failure", "error"),
    [
        (make_provider_error("provider_request", retryable=False), BadGateway),
        (make_provider_error("provider_stalled"), ServiceUnavailable),
    ],
)
def test_a_failure_of_the_provider_says_whether_to_try_again(stage: Stage, failure: Any, error: Any) -> None:
    with pytest.raises(error):
        ask(stage, [failure], max_retries=0)
    [row] = [row for row in list_ledger_rows(stage) if "outcome" in row]
    assert row["billable"] is False


def test_a_budget_that_is_used_up_refuses_the_request(stage: Stage) -> None:
    stage.set_price(input_per_mtok=1_000_000, output_per_mtok=1_000_000)
    set_budgets(stage.resources, ADA, Budgets(tenant=BudgetLimits(daily_usd=Decimal("0.01"))))
    with pytest.raises(PaymentRequired):
        ask(stage, "In Bern.")
    assert stage.driver.requests == []


def test_what_is_held_covers_the_longest_answer_that_is_allowed(stage: Stage) -> None:
    stage.set_price(input_per_mtok=1, output_per_mtok=1)
    set_budgets(stage.resources, ADA, Budgets(tenant=BudgetLimits(daily_usd=Decimal("0.05"))))
    assert ask(stage, "In Bern.", max_output_tokens=10_000).text == "In Bern."
    with pytest.raises(PaymentRequired):
        ask(stage, "In Bern.", max_output_tokens=100_000)


def set_small_budget(stage: Stage) -> None:
    """Let a budget cover one request at a time."""
    stage.set_price(input_per_mtok=1, output_per_mtok=1)
    set_budgets(stage.resources, ADA, Budgets(tenant=BudgetLimits(daily_usd=Decimal("0.05"))))


def test_a_credential_that_cannot_be_opened_holds_nothing(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    set_small_budget(stage)
    with monkeypatch.context() as patch:
        patch.setattr(ask_model, "open_endpoint", fail_to_open)
        with pytest.raises(Conflict):
            ask(stage, max_output_tokens=40_000)
    assert ask(stage, "In Bern.", max_output_tokens=40_000).text == "In Bern."


def fail_to_open(*_given: object) -> None:
    raise Conflict("The key can no longer be decrypted.")


def test_what_a_function_that_died_has_held_is_free_after_ten_minutes_without_any_sweep(stage: Stage) -> None:
    set_small_budget(stage)
    with pytest.raises(ProcessDied):
        ask(stage, [ProcessDied()], max_output_tokens=40_000)
    with pytest.raises(PaymentRequired):
        ask(stage, max_output_tokens=40_000)
    stage.pass_time(601)
    assert ask(stage, "In Bern.", max_output_tokens=40_000).text == "In Bern."


def test_a_request_that_is_answered_with_nothing_is_in_the_ledger(stage: Stage) -> None:
    with pytest.raises(ServiceUnavailable):
        ask(stage, [], max_retries=0)
    [row] = [row for row in list_ledger_rows(stage) if "outcome" in row]
    assert (row["outcome"], row["billable"]) == ("provider_empty", False)


def test_questions_are_decided_in_their_terms(stage: Stage) -> None:
    stage.script_replies(
        reply_with_text('{"urgent": {"probability": 0.2}, "team": {"choice": "sales", "confidence": 0.9}}')
    )
    questions = {
        "urgent": DecisionQuestion(yesno="Is it urgent?"),
        "team": DecisionQuestion(choice="Which team?", options=("sales", "support")),
    }
    decided = decide(stage, {"mail": "Hello"}, questions)
    assert decided["urgent"] == {"answer": False, "probability": 0.2, "confidence": 0.8}
    assert decided["team"] == {"choice": "sales", "confidence": 0.9, "probabilities": None}
    assert decided["usage"]["totalTokens"] == 15
    with pytest.raises(InvalidRequest):
        decide(stage, "x", {"usage": DecisionQuestion(yesno="?")})


def test_decide_01_a_model_that_answers_outside_the_options_has_not_answered(stage: Stage) -> None:
    stage.script_replies(reply_with_text('{"x": {"choice": "c", "confidence": 1}}'))
    questions = {"x": DecisionQuestion(choice="x", options=("a", "b"))}
    decided = decide(stage, [], questions)
    assert decided["x"] == {"choice": None, "confidence": None, "probabilities": None}
    assert len(stage.driver.requests) == 1


@pytest.mark.parametrize("stop", [FinishReason.MAX_TOKENS, FinishReason.REFUSAL])
def test_a_model_that_is_cut_off_or_refuses_has_not_decided(stage: Stage, stop: FinishReason) -> None:
    stage.script_replies(reply_with_text('{"x": {"choi', stop))
    decided = decide(stage, [], {"x": DecisionQuestion(choice="x", options=("a", "b"))})
    assert decided["x"] == {"choice": None, "confidence": None, "probabilities": None}
    assert decided["usage"]["totalTokens"] == 15
