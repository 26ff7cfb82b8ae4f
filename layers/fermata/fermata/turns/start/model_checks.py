"""Refuse a prompt that its model is known not to be able to answer, before anything is written."""

from collections.abc import Sequence

from fermata.agents.registry import get_toolset
from fermata.aws.resources import Resources
from fermata.credentials.known_capabilities import get_choice_capabilities, get_known_capabilities
from fermata.credentials.model_choice import ModelChoice
from fermata.domain.blocks import Block
from fermata.domain.caller import Caller
from fermata.domain.errors import Unprocessable
from fermata.drivers.registry import get_model_traits

NO_VISION_MESSAGE = "The model {} cannot see images. Choose another model, or send the text alone."
NO_TOOL_CALLS_MESSAGE = (
    "The model {} cannot call tools, and there is nothing to be done here without them. Choose another model."
)


def check_model_abilities(
    resources: Resources, caller: Caller, chosen_model: ModelChoice, scope: str, content: Sequence[Block]
) -> None:
    """Check images and tool calls. An unknown ability passes: the provider will refuse it if necessary.

    Raises:
        Unprocessable: The model is known to lack an ability that the prompt or the scope needs.
    """
    has_images = any(block.kind == "image" for block in content)
    if get_model_traits(chosen_model.provider).are_first_party and not has_images:
        return
    # The model list of the credential is one more read. Only for images do servers differ enough to be worth it.
    listed = get_choice_capabilities(resources, caller.tenant, chosen_model) if has_images else None
    capabilities = listed or get_known_capabilities(resources, chosen_model.provider, chosen_model.model)
    if has_images and capabilities.vision_input is False:
        raise Unprocessable(NO_VISION_MESSAGE.format(chosen_model.model))
    if capabilities.tool_calling is False and _has_tools(caller, scope):
        raise Unprocessable(NO_TOOL_CALLS_MESSAGE.format(chosen_model.model))


def _has_tools(caller: Caller, scope: str) -> bool:
    return bool(get_toolset(scope).build_tool_specs(caller.capabilities, scope, tenant=caller.tenant))
