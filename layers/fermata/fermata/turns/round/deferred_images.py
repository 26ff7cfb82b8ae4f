"""Generate the images that a submitted plan uses, in the place of their placeholders (decision 0400)."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from fermata.aws.resources import Resources
from fermata.domain.blocks import ToolCallBlock
from fermata.domain.messages import Message
from fermata.domain.tools import ToolOutput
from fermata.remote_tools.deferred_image_generation import DeferredCall, find_deferred_calls, replace_placeholders
from fermata.tools.calls.pipeline import AdmittedCall

if TYPE_CHECKING:
    from fermata.turns.round.image_budget import ImageRequest
    from fermata.turns.round.remote_calls import TurnRemoteTools

MAX_IMAGES = 8
"""Of one plan. They are generated at the same time."""
MAX_DEFERRED_SECONDS = 95.0
"""How long they take at most."""


def find_image_seconds(call_input: Any) -> float:
    """Return how long a plan waits for its images at most; 0 for one without."""
    return MAX_DEFERRED_SECONDS if find_deferred_calls(call_input) else 0.0


def add_deferred_images(
    resources: Resources,
    tools: "TurnRemoteTools",
    admitted: AdmittedCall,
    messages: Sequence[Message],
    effect_key: str,
) -> AdmittedCall:
    """Return the call of a plan with the images that it uses. The plan says which could not be generated.

    Args:
        resources: The clock.
        tools: Of the turn.
        admitted: The call that submits the plan.
        messages: Of the turn's conversation.
        effect_key: Of that call.
    """
    calls = find_deferred_calls(admitted.arguments)
    if not calls:
        return admitted
    images = _find_images(tools, calls[:MAX_IMAGES], messages, effect_key.partition("/")[0])
    refused = tools.hold_deferred(list(images.values()), effect_key)
    allowed = {call: image for call, image in images.items() if image.effect_key not in refused}
    outputs = {call: refused[image.effect_key] for call, image in images.items() if call not in allowed}
    outputs |= _generate_at_once(resources, tools, allowed)
    urls = {call: str(output.data["imageUrl"]) for call, output in outputs.items() if output.ok}
    arguments = replace_placeholders(admitted.arguments, urls)
    missing = [outputs.get(call) for call in calls if call not in urls]
    if missing:
        notes = [_describe_missing(output) for output in missing]
        arguments = arguments | {"change_log": _add_notes(arguments.get("change_log"), notes)}
    return replace(admitted, arguments=arguments, tool_input=type(admitted.tool_input).model_validate(arguments))


def _find_images(
    tools: "TurnRemoteTools", calls: Sequence[DeferredCall], messages: Sequence[Message], turn: str
) -> dict[DeferredCall, "ImageRequest"]:
    """Return the image of each call that the model has made, with its arguments."""
    blocks = {
        DeferredCall(message.round, index): block
        for message in messages
        if message.turn == turn and message.role == "assistant"
        for index, block in enumerate(one for one in message.content if isinstance(one, ToolCallBlock))
    }
    found = {call: tools.find_deferred(blocks[call], call) for call in calls if call in blocks}
    return {call: image for call, image in found.items() if image is not None}


def _generate_at_once(
    resources: Resources, tools: "TurnRemoteTools", images: Mapping[DeferredCall, "ImageRequest"]
) -> dict[DeferredCall, ToolOutput]:
    outputs: dict[DeferredCall, ToolOutput] = {}

    def run(call: DeferredCall, image: "ImageRequest") -> None:
        outputs[call] = tools.generate_deferred(image)

    threads = [
        resources.clock.start_side_thread(partial(run, call, image), f"image-{call.number}")
        for call, image in images.items()
    ]
    for thread in threads:
        thread.join()
    return outputs


def _describe_missing(output: ToolOutput | None) -> str:
    return f"An image is missing: {(output and output.error) or 'its placeholder is of no call of this request.'}"


def _add_notes(change_log: Any, notes: Sequence[str]) -> Any:
    """Return the change log of a plan, which models write as a list or as a text, with further lines."""
    if isinstance(change_log, str):
        return "\n".join((change_log, *notes))
    return [*(change_log if isinstance(change_log, list) else ()), *notes]
