"""Connect the remote tools of a turn to its round: what they are told, and what they have answered before."""

import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from fermata.agents.definitions.configured_agent import ConfiguredAgent
from fermata.agents.tool_sources.endpoint_tools import ENDPOINT_PREFIX
from fermata.agents.tool_sources.mcp_tools import MCP_PREFIX
from fermata.aws import observability
from fermata.aws.clock import iso_from_epoch
from fermata.aws.dynamodb_items_and_writes import ConditionFailed, TransactionCanceled
from fermata.aws.resources import Resources
from fermata.aws.transient_errors import AWS_ERRORS
from fermata.domain.blocks import ToolCallBlock, ToolResultBlock
from fermata.domain.messages import Message
from fermata.domain.model_io import TokenUsage
from fermata.domain.tools import ToolOutput
from fermata.mcp_sources.mcp_tool_caller import McpToolCaller
from fermata.remote_tools.built_in.built_in_call import FoundPhoto
from fermata.remote_tools.call_http_endpoint import EndpointCaller
from fermata.remote_tools.caller_authorization import open_caller_authorization
from fermata.remote_tools.deferred_image_generation import DeferredCall, is_deferrable
from fermata.remote_tools.http_endpoint_attempt import CallingAgent
from fermata.remote_tools.manifest_tool_executor import EarlierResults
from fermata.remote_tools.paid_request_report import PaidRequest
from fermata.remote_tools.pinned_tools import RemoteToolHandler, load_definitions
from fermata.remote_tools.remote_tool_caller import MAX_ANSWER_SECONDS, RemoteToolCaller
from fermata.remote_tools.signed_tool_attempt import RemoteCallContext
from fermata.remote_tools.tool_definition import ToolDefinition
from fermata.tools.toolset import Toolset
from fermata.turns.accounting import build_tool_request_usage
from fermata.turns.await_remote_results import build_remote_request_id
from fermata.turns.mcp_pin import load_mcp_pin
from fermata.turns.turn import Turn
from fermata.turns.turn_agent import open_turn_agent
from fermata.turns.turn_toolset import open_turn_toolset
from fermata.usage.ledger.ledger_store import RequestUsage
from fermata.usage.usage_writes import build_request_writes

if TYPE_CHECKING:
    from fermata.content.opened_space import OpenedSpace
    from fermata.turns.round.image_budget import ImageRequest

UNCOMMITTED_NUMBERS = 1000
"""Greater than the number of any call of a round."""
CALLBACK_PATH = "/admin/api/ai/tool-callbacks"


class TurnRemoteTools:
    """The remote tools of a turn. `abort` may be called from any thread."""

    def __init__(
        self,
        resources: Resources,
        turn: Turn,
        get_messages: Callable[[], Iterable[Message]],
        open_space: "Callable[[str], OpenedSpace | None]" = lambda _effect_key: None,
    ) -> None:
        """Create it without reading anything.

        Args:
            get_messages: Returns the messages of the conversation that were read so far.
            open_space: Opens the content space of the turn under the key of a call.
        """
        self._open_space = open_space
        self._resources = resources
        self._turn = turn
        self._get_messages = get_messages
        build_context = partial(build_remote_call_context, resources, turn)
        calling = CallingAgent(turn.agent.partition("@")[0], turn.conversation, turn.user)
        self._endpoint_caller = EndpointCaller(resources, turn.tenant, calling)
        self._mcp_caller = McpToolCaller(resources, turn.tenant)
        get_authorization = partial(
            open_caller_authorization, resources, turn.tenant, turn.root_conversation, turn.sealed_authorization
        )
        self._caller = RemoteToolCaller(
            resources,
            turn.tenant,
            build_context,
            self._find_earlier_results,
            get_authorization,
            self._add_paid_request,
            self._store_photo,
        )
        self._paid_requests: dict[str, PaidRequest] = {}
        self._generated: dict[str, ToolOutput] = {}

    @cached_property
    def definitions(self) -> dict[str, ToolDefinition]:
        """The versions that the turn has pinned, by their ids."""
        return load_definitions(self._resources, self._turn.tenant, self._turn.remote_tools)

    def call(self, definition: str, arguments: Mapping[str, Any], effect_key: str) -> ToolOutput:
        """Call a tool, as `RemoteToolCaller.call`, or an endpoint or an MCP server of the turn's agent."""
        if definition.startswith(MCP_PREFIX):
            return self._call_mcp_server(definition, arguments, effect_key)
        if definition.startswith(ENDPOINT_PREFIX):
            return self._call_endpoint(definition.removeprefix(ENDPOINT_PREFIX), arguments, effect_key)
        pinned = self.definitions.get(definition)
        is_deferred = pinned is not None and self._is_deferred(pinned)
        if pinned is not None and not is_deferred and (refusal := self._hold_image(pinned, arguments, effect_key)):
            return refusal
        return self._caller.call(definition, arguments, effect_key, is_deferred=is_deferred)

    def find_deferred(self, block: ToolCallBlock, call: DeferredCall) -> "ImageRequest | None":
        """Return the image of a call that was deferred; None for any other call.

        Args:
            block: The call as the model has made it.
            call: Its place in the turn.
        """
        from fermata.turns.round.image_budget import ImageRequest  # few turns make images

        tool = open_turn_toolset(self._resources, self._turn).find_tool(block.tool_name)
        handler = tool.handler if tool else None
        definition = self.definitions.get(handler.definition) if isinstance(handler, RemoteToolHandler) else None
        if definition is None or not self._is_deferred(definition):
            return None
        return ImageRequest(definition, block.input, f"{self._turn.id}/{call.round}/{call.number}")

    def hold_deferred(self, images: "Sequence[ImageRequest]", effect_key: str) -> dict[str, ToolOutput]:
        """Hold the cost of the images of a plan together, and return why some may not be made, by their effect keys.

        Args:
            images: The ones that matter most come first.
            effect_key: Of the call that submits the plan.
        """
        wanted = [image for image in images if image.effect_key not in self._generated]
        allowed, failure = self._hold_images(wanted, effect_key)
        return {image.effect_key: failure for image in wanted[allowed:] if failure}

    def generate_deferred(self, image: "ImageRequest") -> ToolOutput:
        """Generate an image whose cost is held: once, although its plan may be submitted again with corrections."""
        output = self._generated.get(image.effect_key)
        output = output or self._caller.call(image.definition.id, image.arguments, image.effect_key)
        if output.ok:
            self._generated[image.effect_key] = output
        return output

    def _hold_image(
        self, definition: ToolDefinition, arguments: Mapping[str, Any], effect_key: str
    ) -> ToolOutput | None:
        """Hold what an image may cost where a budget applies, or return why it allows none; None if it may be made."""
        if not (definition.is_built_in and is_deferrable(definition.parsed_manifest.name)):
            return None
        from fermata.turns.round.image_budget import ImageRequest

        return self._hold_images([ImageRequest(definition, arguments, effect_key)], effect_key)[1]

    def _hold_images(self, images: "Sequence[ImageRequest]", effect_key: str) -> tuple[int, ToolOutput | None]:
        if not (images and self._turn.has_tool_budget):
            return len(images), None
        from fermata.turns.round.image_budget import hold_image_budget

        return hold_image_budget(self._resources, self._turn, images, effect_key, self.build_usages())

    def _is_deferred(self, definition: ToolDefinition) -> bool:
        """Return whether a tool's work is done when a plan needs it."""
        if not definition.is_built_in or not is_deferrable(definition.parsed_manifest.name):
            return False
        return any(tool.ends_turn for tool in open_turn_toolset(self._resources, self._turn).tools)

    def _call_endpoint(self, endpoint_id: str, arguments: Mapping[str, Any], effect_key: str) -> ToolOutput:
        agent = open_turn_agent(self._resources, self._turn)
        assert isinstance(agent, ConfiguredAgent), "only agents of tenants have endpoints"
        return self._endpoint_caller.call(agent.definition.endpoints[endpoint_id], arguments, effect_key)

    def _call_mcp_server(self, called: str, arguments: Mapping[str, Any], effect_key: str) -> ToolOutput:
        agent = open_turn_agent(self._resources, self._turn)
        assert isinstance(agent, ConfiguredAgent), "only agents of tenants have MCP servers"
        pin = load_mcp_pin(self._resources, self._turn)
        return self._mcp_caller.call(agent.definition, pin, called, arguments, effect_key)

    def build_usages(self) -> tuple[RequestUsage, ...]:
        """Return the ledger entries of what calls have cost since `clear_usages`, one for each call."""
        paid = self._paid_requests.items()
        return tuple(build_tool_request_usage(self._resources, self._turn, key, request) for key, request in paid)

    def clear_usages(self) -> None:
        """Forget what is in the ledger now."""
        self._paid_requests.clear()

    def store_uncommitted_usages(self, owner: str) -> None:
        """Write the ledger entries of calls whose results are not stored, because the turn goes on without them.

        Their numbers are of this invocation alone, since another one may store the result of the same call.

        Args:
            owner: The id of the invocation.
        """
        paid, self._paid_requests = self._paid_requests, {}
        offset = UNCOMMITTED_NUMBERS * (1 + zlib.crc32(owner.encode()))
        usages = [
            build_tool_request_usage(self._resources, self._turn, key, request, number_offset=offset)
            for key, request in paid.items()
        ]
        if not usages:
            return
        try:
            self._resources.tables.write_items(*build_request_writes(self._resources, usages))
        except (ConditionFailed, TransactionCanceled):
            return  # this write has landed before
        except AWS_ERRORS as error:
            observability.log_warning("tool.unaccounted", turn=self._turn.id, requests=len(usages), why=str(error))

    def _add_paid_request(self, effect_key: str, paid: PaidRequest) -> None:
        """Note a request. A call that was made again, because its result could not be stored, has cost both."""
        before = self._paid_requests.get(effect_key)
        tokens = before.tokens if before else TokenUsage()
        total = TokenUsage(
            prompt=tokens.prompt + paid.tokens.prompt, completion=tokens.completion + paid.tokens.completion
        )
        is_estimated = paid.is_estimated and (before is None or before.is_estimated)
        self._paid_requests[effect_key] = replace(paid, tokens=total, is_estimated=is_estimated)

    def _store_photo(self, effect_key: str, photo: FoundPhoto) -> Mapping[str, Any]:
        from fermata.turns.round.store_site_photo import store_site_photo  # few turns store photos

        return store_site_photo(self._turn, self._open_space, effect_key, photo)

    def abort(self) -> None:
        """End the call under way, because its result is no longer needed."""
        self._caller.abort()
        self._endpoint_caller.abort()
        self._mcp_caller.abort()

    def _find_earlier_results(self) -> EarlierResults:
        toolset = open_turn_toolset(self._resources, self._turn)
        return find_earlier_results(self._get_messages(), self._turn.id, toolset, self.definitions)


def build_remote_call_context(resources: Resources, turn: Turn, effect_key: str) -> RemoteCallContext:
    """Return what a remote tool is told about a call."""
    return RemoteCallContext(
        site=turn.tenant,
        session=turn.root_conversation,
        user=turn.user,
        trace=turn.id,
        provider=turn.provider,
        callback=_build_callback(resources, turn, effect_key),
    )


def _build_callback(resources: Resources, turn: Turn, effect_key: str) -> dict[str, Any]:
    public_url = resources.settings.public_url.rstrip("/")
    return {
        "path": CALLBACK_PATH,
        **({"url": public_url + CALLBACK_PATH} if public_url else {}),
        "tenant": turn.tenant,
        "bridgeId": turn.id,
        "requestId": build_remote_request_id(effect_key),
        "expiresAt": iso_from_epoch(resources.clock.time() + MAX_ANSWER_SECONDS),
    }


def find_earlier_results(
    messages: Iterable[Message], turn_id: str, toolset: Toolset, definitions: Mapping[str, ToolDefinition]
) -> EarlierResults:
    """Return the results that remote tools have had in this turn. Those that are stored as blobs are left out."""
    own = [message for message in messages if message.turn == turn_id]
    calls = {
        block.tool_call_id: block for message in own for block in message.content if isinstance(block, ToolCallBlock)
    }
    earlier = EarlierResults()
    for message in own:
        call = calls.get(message.tool_call_id or "")
        tool = toolset.find_tool(call.tool_name) if call else None
        if call is None or tool is None or not isinstance(tool.handler, RemoteToolHandler):
            continue
        definition = definitions.get(tool.handler.definition)
        for block in message.content:
            if definition is not None and isinstance(block, ToolResultBlock) and block.ok:
                earlier.add(definition.parsed_manifest, call.input, block.data)
    return earlier
