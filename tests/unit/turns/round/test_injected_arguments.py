"""Arguments of browser calls that are added to the model's."""

from typing import Any

import pytest

from fermata.pricing import catalogue
from fermata.pricing.catalogue import PriceCatalogue, PricedModel
from fermata.pricing.token_cost import Price
from tests.unit.turns.stage import Stage, reply_with_calls, tool_call_block


def request_input(stage: Stage, name: str, *, names: str = "seed", **given: Any) -> Any:
    stage.start_turn("Go", tool_names=names)
    stage.script_replies(reply_with_calls(tool_call_block(name, **given)))
    assert stage.run_workflow() == "waiting"
    return stage.tool_requests()[-1].input


@pytest.mark.parametrize(("name", "names"), [("applyCss", "seed"), ("site_apply_css", "prefixed")])
@pytest.mark.parametrize("other_arguments", [{}, {"operation": "merge"}, {"selectors": None}])
def test_css_is_merged_for_every_request_of_the_model(
    stage: Stage, name: str, names: str, other_arguments: dict[str, str]
) -> None:
    css = "p { top: 0 }"
    assert request_input(stage, name, names=names, css=css, **other_arguments) == {"css": css, "operation": "merge"}


def test_the_canvas_screenshot_is_requested_from_the_sites_own_tool(stage: Stage) -> None:
    asked_for = request_input(stage, "render_snapshot", nodeId="n1", captureScreenshot="no")
    assert asked_for == {"nodeId": "n1", "captureScreenshot": True}


@pytest.mark.parametrize(("case", "sees"), [("C077", True), ("C078", False)])
def test_the_vision_flag_says_whether_the_model_reads_images(stage: Stage, case: str, sees: bool) -> None:
    offer = PricedModel(price=Price(input_per_mtok=1, output_per_mtok=1), can_read_images=sees)
    catalogue.store_catalogue(stage.resources, PriceCatalogue(refreshed_at=1, priced_models={"model-1": offer}))
    assert request_input(stage, "render_snapshot") == {"captureScreenshot": sees}, case
