"""What an editor is asked for besides what the model said."""

from typing import Any

import pytest

from fermata.pricing import catalogue
from fermata.pricing.catalogue import PriceCatalogue, PricedModel
from fermata.pricing.prices import Price
from tests.unit.turns.stage import Stage, reply_with_calls, tool_call_block


def asked(stage: Stage, name: str, *, names: str = "seed", **given: Any) -> Any:
    stage.start_turn("Go", tool_names=names)
    stage.script_replies(reply_with_calls(tool_call_block(name, **given)))
    assert stage.run_workflow() == "waiting"
    return stage.tool_requests()[-1].input


@pytest.mark.parametrize(("name", "names"), [("applyCss", "seed"), ("site_apply_css", "prefixed")])
@pytest.mark.parametrize("said", [{}, {"operation": "delete"}])
def test_css_is_always_merged_whatever_the_model_makes_of_it(
    stage: Stage, name: str, names: str, said: dict[str, str]
) -> None:
    css = "p { top: 0 }"
    assert asked(stage, name, names=names, css=css, **said) == {"css": css, "operation": "merge"}


def test_the_picture_of_the_canvas_is_asked_for_by_the_sites_own_tool(stage: Stage) -> None:
    asked_for = asked(stage, "render_snapshot", nodeId="n1", captureScreenshot="no")
    assert asked_for == {"nodeId": "n1", "captureScreenshot": True}


@pytest.mark.parametrize(("case", "sees"), [("C077", True), ("C078", False)])
def test_the_flag_says_whether_the_model_sees(stage: Stage, case: str, sees: bool) -> None:
    offer = PricedModel(price=Price(input_per_mtok=1, output_per_mtok=1), sees=sees)
    catalogue.store_catalogue(stage.resources, PriceCatalogue(refreshed_at=1, priced_models={"model-1": offer}))
    assert asked(stage, "render_snapshot") == {"captureScreenshot": sees}, case
