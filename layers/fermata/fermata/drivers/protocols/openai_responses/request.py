"""Maps an `Ask` to the body of a stateless Responses request.

The stable part comes first (instructions, tools, the conversation as it grows), so that the providers' automatic
prompt caches find each request's prefix in the last one. Nothing is stored with the provider: what it wants to
remember between two rounds goes along as encrypted reasoning.
"""

from collections.abc import Iterator
from typing import Any

from fermata.domain.blocks import ReasoningBlock
from fermata.domain.model_io import ModelRequest
from fermata.domain.tools import ToolSpec
from fermata.drivers.protocols.json_fields import as_dict_list, as_text
from fermata.drivers.protocols.message_mapping import (
    MessageGroup,
    encode_call_arguments,
    format_result_text,
    group_messages,
    image_to_data_url,
    plain_id_formatter,
    schema_with_properties,
)

MIN_OUTPUT_TOKENS = 16
_MAX_CALL_ID_CHARS = 64
OMIT_REASONING_ITEMS = "reasoning items"
"""The adjustment for a server that cannot read what it once encrypted: another account's key, or too old."""
_REASONING = ("type", "id", "status", "summary", "encrypted_content", "content", "format", "signature")
"""What OpenRouter says of a reasoning item, and takes again."""

_JsonObject = dict[str, Any]


def build_request_body(
    ask: ModelRequest,
    provider: str,
    adjusted: frozenset[str],
    *,
    with_item_ids: bool,
    thinking_allowance: int,
) -> dict[str, Any]:
    """`named`: whether items need ids and a status, as OpenRouter has them, or must not have any."""
    turns = group_messages(ask, provider, plain_id_formatter(_MAX_CALL_ID_CHARS))
    if OMIT_REASONING_ITEMS in adjusted:
        for turn in turns:
            turn.blocks = [block for block in turn.blocks if block.kind != "reasoning"]
    items = _Named() if with_item_ids else _Nameless()
    body: dict[str, Any] = {"model": ask.model, "stream": True, "store": False}
    if ask.system.strip():
        body["instructions"] = ask.system
    body["input"] = [item for turn in turns for item in _items(turn, items)]
    if ask.tools:
        body["tools"] = [_tool(spec) for spec in ask.tools]
    if ask.tools and not ask.call_tools:
        body["tool_choice"] = "none"
    body["max_output_tokens"] = max(MIN_OUTPUT_TOKENS, ask.max_tokens) + thinking_allowance
    return body


def _items(turn: MessageGroup, items: "_Nameless") -> Iterator[_JsonObject]:
    if turn.role == "user":
        yield {"type": "message", "role": "user", "content": _content(turn)}
        return
    phase: _JsonObject = {}
    for block in turn.blocks:
        match block.kind:
            case "text":
                yield items.message(block.text) | phase
                phase = {}
            case "toolCall":
                name = plain_id_formatter(_MAX_CALL_ID_CHARS)(block.tool_name, 1)
                yield items.call(block.tool_call_id, name, encode_call_arguments(block))
            case "reasoning" if block.payload.get("type") == "message":
                phase = {"phase": block.payload.get("phase")}
            case "reasoning":
                yield from items.reasoning(block)
    for result in turn.results:
        output = format_result_text(result.block)
        yield {"type": "function_call_output", "call_id": result.call_id, "output": output}


def _content(turn: MessageGroup) -> list[_JsonObject]:
    texts = [{"type": "input_text", "text": text} for text in turn.texts]
    images = [{"type": "input_image", "image_url": image_to_data_url(image), "detail": "auto"} for image in turn.images]
    volatile = [{"type": "input_text", "text": turn.volatile}] if turn.volatile else []
    return [*texts, *images, *volatile]


def _tool(spec: ToolSpec) -> _JsonObject:
    # Without `strict: false` the provider makes every optional member of the schema a required one.
    said = {"description": spec.description} if spec.description else {}
    return {"type": "function", "name": spec.name, **said, "parameters": schema_with_properties(spec), "strict": False}


class _Nameless:
    """OpenAI looks an id up among stored items, of which there are none."""

    def message(self, text: str) -> _JsonObject:
        return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}

    def call(self, call_id: str, name: str, arguments: str) -> _JsonObject:
        return {"type": "function_call", "call_id": call_id, "name": name, "arguments": arguments}

    def reasoning(self, block: ReasoningBlock) -> Iterator[_JsonObject]:
        """Only what was encrypted is read again; a summary has to be there, if only empty."""
        if encrypted := as_text(block.payload.get("encrypted_content")):
            summary = as_dict_list(block.payload.get("summary"))
            yield {"type": "reasoning", "summary": summary, "encrypted_content": encrypted}


class _Named(_Nameless):
    """OpenRouter wants what the model said back as its API gives it: with ids, and finished."""

    def __init__(self) -> None:
        self._messages = 0
        self._seen: set[str] = set()

    def message(self, text: str) -> _JsonObject:
        self._messages += 1
        content = [{"type": "output_text", "text": text, "annotations": []}]
        own = {"id": f"msg_{self._messages}", "status": "completed"}
        return {"type": "message", "role": "assistant", **own, "content": content}

    def call(self, call_id: str, name: str, arguments: str) -> _JsonObject:
        own = {"id": f"fc_{call_id}", "status": "completed"}
        return super().call(call_id, name, arguments) | own

    def reasoning(self, block: ReasoningBlock) -> Iterator[_JsonObject]:
        """As it came; its id, which signatures may be bound to, stands only once in a request."""
        item = {name: block.payload[name] for name in _REASONING if block.payload.get(name) is not None}
        name = as_text(item.get("id")) or f"rs_{len(self._seen) + 1}"
        is_whole = item.get("type") == "reasoning" and isinstance(item.get("encrypted_content", ""), str)
        if is_whole and name not in self._seen:
            self._seen.add(name)
            yield {**item, "summary": as_dict_list(item.get("summary")), "id": name}
