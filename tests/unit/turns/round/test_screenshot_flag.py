"""The vision flag of a browser call: an editor takes a screenshot only for a model that can see it."""

from typing import Any

import pytest

from fermata.credentials import credential_store
from fermata.pricing import catalogue
from fermata.pricing.catalogue import PriceCatalogue, PricedModel
from fermata.pricing.token_cost import Price
from tests.unit.turns.stage import Stage, reply_with_calls, tool_call_block

CAN_SEE = PricedModel(price=Price(input_per_mtok=1, output_per_mtok=1), can_read_images=True)
CANNOT = CAN_SEE.model_copy(update={"can_read_images": False})


def request_input(stage: Stage, *, name: str = "render_snapshot", names: str = "seed", **given: Any) -> Any:
    """Return the input of the browser request when the model calls the tool."""
    stage.start_turn("Look", tool_names=names)
    stage.script_replies(reply_with_calls(tool_call_block(name, **given)))
    assert stage.run_workflow() == "waiting"
    return stage.tool_requests()[-1].input


def choose_model(stage: Stage, provider: str, offer: PricedModel | None = None) -> None:
    """Start a conversation with a model of this provider, with this entry in the price catalogue."""
    key, address = (None, "https://8.8.8.8") if provider in ("ollama", "openai-compatible") else ("sk-1", None)
    way = "baseUrl" if address else "apiKey"
    stage.credential = credential_store.create_credential(
        stage.resources, stage.caller, provider, way, "other", key, address
    )
    stage.driver.provider = provider
    stage.new_conversation()
    if offer:
        catalogue.store_catalogue(stage.resources, PriceCatalogue(refreshed_at=1, priced_models={"model-1": offer}))


@pytest.mark.parametrize(
    ("name", "names"),
    [("render_snapshot", "seed"), ("site_render_snapshot", "prefixed"), ("render_snapshot", "prefixed")],
)
def test_a_model_with_vision_gets_a_screenshot_under_any_tool_name(stage: Stage, name: str, names: str) -> None:
    assert request_input(stage, name=name, names=names, breakpointId="b1") == {
        "breakpointId": "b1",
        "captureScreenshot": True,
    }


def test_a_model_without_vision_gets_no_screenshot(stage: Stage) -> None:
    choose_model(stage, "anthropic", CANNOT)
    assert request_input(stage) == {"captureScreenshot": False}


@pytest.mark.parametrize("provider", ["openai", "openrouter", "ollama", "openai-compatible"])
def test_no_screenshot_is_taken_where_results_are_sent_as_text(stage: Stage, provider: str) -> None:
    choose_model(stage, provider, CAN_SEE)
    assert request_input(stage) == {"captureScreenshot": False}


@pytest.mark.parametrize("wish", [True, False, "true", None])
def test_the_model_cannot_set_the_flag(stage: Stage, wish: Any) -> None:
    assert request_input(stage, captureScreenshot=wish) == {"captureScreenshot": True}


def test_the_flag_is_hidden_from_the_model_and_its_call_is_streamed_unchanged(stage: Stage) -> None:
    request_input(stage, breakpointId="b1")
    offered = next(tool for tool in stage.driver.requests[-1].tools if tool.name == "render_snapshot")
    assert "captureScreenshot" not in str(offered.input_schema)
    call_event = next(event for event in stage.events() if event.type == "toolCall")
    assert call_event.input == {"breakpointId": "b1"}
