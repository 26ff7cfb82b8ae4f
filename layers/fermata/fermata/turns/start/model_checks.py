"""What a prompt asks of its model, refused before anything is written when it is known that the model cannot do it."""

from collections.abc import Sequence

from fermata.aws.resources import Resources
from fermata.credentials.known_capabilities import get_choice_capabilities, get_known_capabilities
from fermata.credentials.model_choice import ModelChoice
from fermata.domain.blocks import Block
from fermata.domain.caller import Caller
from fermata.domain.errors import Unprocessable
from fermata.drivers.registry import get_model_traits
from fermata.tools.registry import get_toolset

NO_VISION_MESSAGE = "The model {} cannot see images. Choose another model, or send the text alone."
NO_TOOL_CALLS_MESSAGE = (
    "The model {} cannot call tools, and there is nothing to be done here without them. Choose another model."
)


def check_model_abilities(
    resources: Resources, caller: Caller, chosen_model: ModelChoice, scope: str, content: Sequence[Block]
) -> None:
    """Raises Unprocessable. What nobody knows is let through: the provider will say."""
    has_pictures = any(block.kind == "image" for block in content)
    if get_model_traits(chosen_model.provider).are_uniform and not has_pictures:
        return
    # What was listed is one more thing to read: for pictures, of which servers differ most.
    looked_up = get_choice_capabilities(resources, caller.tenant, chosen_model) if has_pictures else None
    known = looked_up or get_known_capabilities(resources, chosen_model.provider, chosen_model.model)
    if has_pictures and known.vision_input is False:
        raise Unprocessable(NO_VISION_MESSAGE.format(chosen_model.model))
    if known.tool_calling is False and get_toolset(scope).build_tool_specs(
        caller.capabilities, scope, tenant=caller.tenant
    ):
        raise Unprocessable(NO_TOOL_CALLS_MESSAGE.format(chosen_model.model))
