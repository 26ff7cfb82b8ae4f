"""Show the results of endpoint tools whose agent says how they are displayed, as parts of the response."""

from collections.abc import Mapping
from typing import Any

from fermata.agents.definitions.configured_agent import ConfiguredAgent
from fermata.domain.events import DataPartEvent
from fermata.domain.json_shortening import shorten_value
from fermata.turns.call_transitions import MAX_SHOWN_OUTPUT_CHARS, Transition
from fermata.turns.round.turn_context import TurnContext

DISPLAY_PART = "data-display"


def build_display_parts(context: TurnContext, transition: Transition) -> tuple[DataPartEvent, ...]:
    """Return a part for each call that has succeeded and whose tool has a display.

    Args:
        context: The turn, whose agent defines the tools.
        transition: The calls that were answered, with their outputs.
    """
    displays = _list_displays(context)
    return tuple(
        DataPartEvent(
            name=DISPLAY_PART,
            part_id=f"display-{displays[call.tool_name][0]}-{call.tool_call_id}",
            data={
                "toolCallId": call.tool_call_id,
                "toolName": call.tool_name,
                "display": displays[call.tool_name][1],
                "output": shorten_value(output.data, MAX_SHOWN_OUTPUT_CHARS),
                "input": shorten_value(call.input, MAX_SHOWN_OUTPUT_CHARS),
            },
        )
        for call, output in transition.outputs
        if output.ok and call.tool_name in displays
    )


def _list_displays(context: TurnContext) -> Mapping[str, tuple[str, dict[str, Any]]]:
    """Return the endpoint and the display of each tool that has one, by the tool's name."""
    if not isinstance(context.agent, ConfiguredAgent):
        return {}
    references = context.agent.definition.tools
    return {one.name: (one.endpoint_id, one.display) for one in references if one.display is not None}
