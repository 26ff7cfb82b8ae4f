"""Whether an editor is asked for a picture: only when the turn's model will see it."""

from typing import Any

import pytest

from fermata.credentials import credential_store
from fermata.pricing import catalogue
from fermata.pricing.catalogue import PriceCatalogue, PricedModel
from fermata.pricing.prices import Price
from tests.unit.turns.stage import Stage, reply_with_calls, tool_call_block

CAN_SEE = PricedModel(price=Price(input_per_mtok=1, output_per_mtok=1), sees=True)
CANNOT = CAN_SEE.model_copy(update={"sees": False})


def asked(stage: Stage, *, name: str = "render_snapshot", names: str = "seed", **given: Any) -> Any:
    """What the editor is asked for when the model calls the tool."""
    stage.start_turn("Look", tool_names=names)
    stage.script_replies(reply_with_calls(tool_call_block(name, **given)))
    assert stage.run_workflow() == "waiting"
    return stage.tool_requests()[-1].input


def use(stage: Stage, provider: str, offer: PricedModel | None = None) -> None:
    """The next conversation is with a model of this provider, which the catalogue says this of."""
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
def test_a_model_that_sees_gets_a_picture_whatever_the_tool_is_called(stage: Stage, name: str, names: str) -> None:
    assert asked(stage, name=name, names=names, breakpointId="b1") == {"breakpointId": "b1", "captureScreenshot": True}


def test_a_model_that_cannot_see_gets_none(stage: Stage) -> None:
    use(stage, "anthropic", CANNOT)
    assert asked(stage) == {"captureScreenshot": False}


@pytest.mark.parametrize("provider", ["openai", "openrouter", "ollama", "openai-compatible"])
def test_no_picture_is_taken_where_results_are_read_as_text(stage: Stage, provider: str) -> None:
    use(stage, provider, CAN_SEE)
    assert asked(stage) == {"captureScreenshot": False}


@pytest.mark.parametrize("wish", [True, False, "true", None])
def test_the_model_has_no_say_in_it(stage: Stage, wish: Any) -> None:
    assert asked(stage, captureScreenshot=wish) == {"captureScreenshot": True}


def test_the_model_is_not_told_of_the_flag_and_its_call_is_shown_as_it_was_made(stage: Stage) -> None:
    asked(stage, breakpointId="b1")
    offered = next(tool for tool in stage.driver.requests[-1].tools if tool.name == "render_snapshot")
    assert "captureScreenshot" not in str(offered.input_schema)
    told = next(event for event in stage.events() if event.type == "toolCall")
    assert told.input == {"breakpointId": "b1"}
