"""Map a model request to the body of a stateless Responses request (decision 0071).

The stable part comes first (instructions, tools, the conversation as it grows), so that the provider's automatic prompt
cache finds each request's prefix in the last one. The provider stores nothing: what it wants to remember between two
rounds is sent back as encrypted reasoning.
"""

from collections.abc import Iterator
from typing import Any, Self

from fermata.domain.blocks import ReasoningBlock
from fermata.domain.model_io import ModelRequest
from fermata.domain.run_settings import OutputFormat
from fermata.domain.tools import ToolSpec
from fermata.drivers.adjustments import OMIT_REASONING_ITEMS, AppliedAdjustments
from fermata.drivers.protocols.call_id_mapping import choose_call_id_formatter, plain_id_formatter
from fermata.drivers.protocols.json_fields import as_dict_list, as_text
from fermata.drivers.protocols.message_groups import MessageGroup, build_conversation
from fermata.drivers.protocols.shared_encoding import (
    build_tool_schema,
    encode_call_arguments,
    format_result_text,
    image_to_data_url,
)

MIN_OUTPUT_TOKENS = 16
_REASONING_FIELDS = ("type", "id", "status", "summary", "encrypted_content", "content", "format", "signature")
"""What OpenRouter sends in a reasoning item, and accepts."""
_format_id = plain_id_formatter(64)

_JsonObject = dict[str, Any]


def build_request_body(
    request: ModelRequest,
    provider: str,
    applied: AppliedAdjustments,
    *,
    with_item_ids: bool,
    thinking_allowance: int,
) -> _JsonObject:
    """Build the JSON body.

    Args:
        provider: Reasoning blocks of other providers are left out.
        with_item_ids: Whether items have an id and a status, as OpenRouter requires, or none, as OpenAI does.
        thinking_allowance: Tokens that are added to the output limit for thinking.
    """
    builder_type = _OpenRouterItems if with_item_ids else _OpenAIItems
    omits_reasoning = OMIT_REASONING_ITEMS in applied
    body: _JsonObject = {"model": request.model, "stream": True, "store": False}
    if request.system.strip():
        body["instructions"] = request.system
    body["input"] = build_conversation(
        request,
        provider,
        choose_call_id_formatter(applied, _format_id),
        lambda: builder_type(omits_reasoning=omits_reasoning),
        key=applied,
    )
    if request.tools:
        body["tools"] = [_build_tool(spec) for spec in request.tools]
    if request.tools and not request.call_tools:
        body["tool_choice"] = "none"
    elif request.forced_tool == "*":
        body["tool_choice"] = "required"
    elif request.forced_tool:
        body["tool_choice"] = {"type": "function", "name": request.forced_tool}
    if request.output is not None:
        body["text"] = {"format": _build_output_format(request.output)}
    body["max_output_tokens"] = max(MIN_OUTPUT_TOKENS, request.max_tokens) + thinking_allowance
    return body


def _build_output_format(output: OutputFormat) -> _JsonObject:
    # Without `strict: false`, schemas with optional members are refused.
    return {"type": "json_schema", "name": _format_id(output.name, 1), "schema": output.json_schema, "strict": False}


def _iter_results(group: MessageGroup) -> Iterator[_JsonObject]:
    for result in group.results:
        output = format_result_text(result.block)
        yield {"type": "function_call_output", "call_id": result.call_id, "output": output}


def _build_user_content(group: MessageGroup) -> list[_JsonObject]:
    texts = [{"type": "input_text", "text": text} for text in group.texts]
    images = [
        {"type": "input_image", "image_url": image_to_data_url(image), "detail": "auto"} for image in group.images
    ]
    volatile = [{"type": "input_text", "text": group.volatile_context}] if group.volatile_context else []
    return [*texts, *images, *volatile]


def _build_tool(spec: ToolSpec) -> _JsonObject:
    # Without `strict: false`, OpenAI makes every optional member of the schema a required one (decision 0071).
    description = {"description": spec.description} if spec.description else {}
    return {
        "type": "function",
        "name": spec.name,
        **description,
        "parameters": build_tool_schema(spec),
        "strict": False,
    }


class _OpenAIItems:
    """Build items without ids: OpenAI looks an id up among stored items, and nothing is stored."""

    def __init__(self, *, omits_reasoning: bool) -> None:
        self._omits_reasoning = omits_reasoning

    def copy(self) -> Self:
        return self

    def build_items(self, group: MessageGroup) -> list[_JsonObject]:
        if group.role == "user":
            return [{"type": "message", "role": "user", "content": _build_user_content(group)}]
        return [*self._iter_model_items(group), *_iter_results(group)]

    def _iter_model_items(self, group: MessageGroup) -> Iterator[_JsonObject]:
        phase: _JsonObject = {}
        for block in group.blocks:
            match block.kind:
                case "text":
                    yield self.build_message(block.text) | phase
                    phase = {}
                case "toolCall":
                    tool_name = _format_id(block.tool_name, 1)
                    yield self.build_call(block.tool_call_id, tool_name, encode_call_arguments(block))
                case "reasoning" if self._omits_reasoning:
                    pass
                case "reasoning" if block.payload.get("type") == "message":
                    # Newer models stop early if the phase of an earlier message is lost (decision 0071).
                    phase = {"phase": block.payload.get("phase")}
                case "reasoning":
                    yield from self.iter_reasoning(block)

    def build_message(self, text: str) -> _JsonObject:
        return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}

    def build_call(self, call_id: str, name: str, arguments: str) -> _JsonObject:
        return {"type": "function_call", "call_id": call_id, "name": name, "arguments": arguments}

    def iter_reasoning(self, block: ReasoningBlock) -> Iterator[_JsonObject]:
        """Yield encrypted reasoning: OpenAI can use no other. The summary is required, even if it is empty."""
        if encrypted := as_text(block.payload.get("encrypted_content")):
            summary = as_dict_list(block.payload.get("summary"))
            yield {"type": "reasoning", "summary": summary, "encrypted_content": encrypted}


class _OpenRouterItems(_OpenAIItems):
    """Build items with id and status; OpenRouter's schema requires both.

    Ids of messages and calls follow from their place, so that a request's prefix stays the same to the byte.
    """

    def __init__(self, *, omits_reasoning: bool) -> None:
        super().__init__(omits_reasoning=omits_reasoning)
        self._message_count = 0
        self._reasoning_ids: set[str] = set()

    def copy(self) -> Self:
        copied = type(self)(omits_reasoning=self._omits_reasoning)
        copied._message_count = self._message_count
        copied._reasoning_ids = self._reasoning_ids.copy()
        return copied

    def build_message(self, text: str) -> _JsonObject:
        self._message_count += 1
        return {
            "type": "message",
            "role": "assistant",
            "id": f"msg_{self._message_count}",
            "status": "completed",
            "content": [{"type": "output_text", "text": text, "annotations": []}],
        }

    def build_call(self, call_id: str, name: str, arguments: str) -> _JsonObject:
        return super().build_call(call_id, name, arguments) | {"id": f"fc_{call_id}", "status": "completed"}

    def iter_reasoning(self, block: ReasoningBlock) -> Iterator[_JsonObject]:
        """Return the item as it came. Signatures may be bound to its id, which may occur once in a request."""
        item = {name: block.payload[name] for name in _REASONING_FIELDS if block.payload.get(name) is not None}
        item_id = as_text(item.get("id")) or f"rs_{len(self._reasoning_ids) + 1}"
        is_valid = item.get("type") == "reasoning" and isinstance(item.get("encrypted_content", ""), str)
        if is_valid and item_id not in self._reasoning_ids:
            self._reasoning_ids.add(item_id)
            yield {**item, "summary": as_dict_list(item.get("summary")), "id": item_id}
