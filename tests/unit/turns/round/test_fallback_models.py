"""A model that fails without a word is followed by the next one, in the order that the agent names them."""

from decimal import Decimal
from typing import Any

import pytest

from fermata.domain.events import ErrorEvent
from fermata.domain.model_io import TextDelta
from fermata.domain.run_settings import RunSettings
from fermata.turns.round.fallback_models import MAX_FALLBACK_MODELS, list_fallback_models
from fermata.usage.budgets.budget_limits import BudgetLimits, Budgets, set_budgets
from tests.agent_definitions import make_definition, push_definitions, start_agent_turn
from tests.unit.turns.stage import ADA, Stage, make_provider_error

REFUSED = make_provider_error("provider_request", retryable=False)
OVERLOADED = make_provider_error()


def start_turn_with_fallbacks(stage: Stage, *names: str) -> None:
    properties = {"providerOptions": {"gateway": {"fallbackModels": [*names]}}}
    push_definitions(stage.resources, ADA, make_definition(credential=stage.credential.id, properties=properties))
    start_agent_turn(stage, "helper", "Hello")


def asked_models(stage: Stage) -> list[str]:
    return [request.model for request in stage.driver.requests]


def ledger_rows(stage: Stage) -> list[tuple[str, str]]:
    rows = stage.ledger_rows()
    return [(row["model"], row["outcome"]) for row in sorted(rows, key=lambda row: row["sk"])]


def test_models_are_asked_in_their_order_and_each_attempt_has_a_ledger_row(stage: Stage) -> None:
    start_turn_with_fallbacks(stage, "model-2", "model-3")
    stage.script_replies([REFUSED], [REFUSED], "Hello.")
    assert stage.run_workflow() == "finished"
    assert stage.streamed_text() == "Hello."
    assert asked_models(stage) == ["model-1", "model-2", "model-3"]
    assert ledger_rows(stage) == [
        ("model-1", "provider_request"),
        ("model-2", "provider_request"),
        ("model-3", "ok"),
    ]


def test_a_model_is_repeated_as_usual_before_the_next_one_is_asked(stage: Stage) -> None:
    start_turn_with_fallbacks(stage, "model-2")
    stage.script_replies([OVERLOADED], [OVERLOADED], [OVERLOADED], "Hello.")
    stage.run_workflow()
    assert asked_models(stage) == ["model-1"] * 3 + ["model-2"]


def test_a_model_that_has_begun_to_answer_is_never_switched(stage: Stage) -> None:
    start_turn_with_fallbacks(stage, "model-2")
    stage.script_replies([TextDelta(text="Well, "), REFUSED])
    stage.run_workflow()
    assert asked_models(stage) == ["model-1"]
    assert isinstance(stage.terminal_events()[-1], ErrorEvent)


def test_the_error_of_the_last_model_ends_the_turn(stage: Stage) -> None:
    start_turn_with_fallbacks(stage, "model-2")
    stage.script_replies([REFUSED], [make_provider_error("provider_auth", retryable=False)])
    stage.run_workflow()
    end = stage.terminal_events()[-1]
    assert isinstance(end, ErrorEvent)
    assert end.code == "provider_auth"


def test_a_further_model_has_to_be_within_the_budget_too(stage: Stage) -> None:
    stage.set_price(input_per_mtok=3, output_per_mtok=15)
    set_budgets(stage.resources, stage.caller, Budgets(tenant=BudgetLimits(daily_usd=Decimal(1))))
    start_turn_with_fallbacks(stage, "model-without-price")
    stage.script_replies([REFUSED], "Never.")
    stage.run_workflow()
    end = stage.terminal_events()[-1]
    assert isinstance(end, ErrorEvent)
    assert end.code == "budget_exhausted"
    assert asked_models(stage) == ["model-1"]


@pytest.mark.parametrize("code", ["provider_overflow", "provider_images", "provider_closed"])
def test_what_another_model_would_not_change_is_not_asked_of_one(stage: Stage, code: str) -> None:
    start_turn_with_fallbacks(stage, "model-2")
    stage.script_replies([make_provider_error(code, retryable=False)], "Never.", "Never.")
    stage.run_workflow()
    assert "model-2" not in asked_models(stage)


def test_every_round_begins_with_the_first_model(stage: Stage) -> None:
    start_turn_with_fallbacks(stage, "model-2")
    stage.script_replies([REFUSED], "One.")
    stage.run_workflow()
    stage.script_replies("Two.")
    start_agent_turn(stage, "helper", "Again")
    stage.run_workflow()
    assert asked_models(stage) == ["model-1", "model-2", "model-1"]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, ()),
        ({"gateway": None}, ()),
        ({"gateway": {"fallbackModels": "a"}}, ()),
        ({"gateway": {"models": ["a", "b"]}}, ("a", "b")),
        ({"gateway": {"fallbackModels": ["a", 7, "", "b", "a"]}}, ("a", "b")),
        ({"gateway": {"fallbackModels": [str(number) for number in range(99)]}}, tuple("01234567")),
    ],
)
def test_only_names_are_read_each_once_and_no_more_than_the_limit(options: Any, expected: tuple[str, ...]) -> None:
    assert list_fallback_models(RunSettings(provider_options=options)) == expected
    assert len(expected) <= MAX_FALLBACK_MODELS
