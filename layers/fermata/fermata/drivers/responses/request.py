"""Maps an `Ask` to the body of a stateless Responses request.

The stable part comes first (instructions, tools, the conversation as it grows), so that the providers' automatic
prompt caches find each request's prefix in the last one. Nothing is stored with the provider: what it wants to
remember between two rounds goes along as encrypted reasoning.
"""

from collections.abc import Iterator
from typing import Any

from fermata.drivers.mapping import Turn, arguments_text, data_url, plain, result_text, schema_of, turns_of
from fermata.drivers.members import objects_of, text_of
from fermata.drivers.thinking import room
from fermata.words.blocks import ReasoningBlock
from fermata.words.model import Ask
from fermata.words.tools import ToolSpec

FEWEST_TOKENS = 16
LONGEST_CALL_ID = 64
WITHOUT_REASONING = "reasoning items"
"""The adjustment for a server that cannot read what it once encrypted: another account's key, or too old."""
_REASONING = ("type", "id", "status", "summary", "encrypted_content", "content", "format", "signature")
"""What OpenRouter says of a reasoning item, and takes again."""

Item = dict[str, Any]


def body_of(ask: Ask, provider: str, adjusted: frozenset[str], *, named: bool) -> dict[str, Any]:
    """`named`: whether items need ids and a status, as OpenRouter has them, or must not have any."""
    turns = turns_of(ask, provider, plain(LONGEST_CALL_ID))
    if WITHOUT_REASONING in adjusted:
        for turn in turns:
            turn.said = [block for block in turn.said if block.kind != "reasoning"]
    items = _Named() if named else _Nameless()
    body: dict[str, Any] = {"model": ask.model, "stream": True, "store": False}
    if ask.system.strip():
        body["instructions"] = ask.system
    body["input"] = [item for turn in turns for item in _items(turn, items)]
    if ask.tools:
        body["tools"] = [_tool(spec) for spec in ask.tools]
    if ask.tools and not ask.call_tools:
        body["tool_choice"] = "none"
    body["max_output_tokens"] = max(FEWEST_TOKENS, ask.max_tokens) + room(provider, ask.model, ask.thinking_tokens)
    return body


def _items(turn: Turn, items: "_Nameless") -> Iterator[Item]:
    if turn.role == "user":
        yield {"type": "message", "role": "user", "content": _content(turn)}
        return
    phase: Item = {}
    for block in turn.said:
        match block.kind:
            case "text":
                yield items.message(block.text) | phase
                phase = {}
            case "toolCall":
                name = plain(LONGEST_CALL_ID)(block.tool_name, 1)
                yield items.call(block.tool_call_id, name, arguments_text(block))
            case "reasoning" if block.payload.get("type") == "message":
                phase = {"phase": block.payload.get("phase")}
            case "reasoning":
                yield from items.reasoning(block)
    for result in turn.results:
        output = result_text(result.block)
        yield {"type": "function_call_output", "call_id": result.call_id, "output": output}


def _content(turn: Turn) -> list[Item]:
    texts = [{"type": "input_text", "text": text} for text in turn.texts]
    images = [{"type": "input_image", "image_url": data_url(image), "detail": "auto"} for image in turn.images]
    volatile = [{"type": "input_text", "text": turn.volatile}] if turn.volatile else []
    return [*texts, *images, *volatile]


def _tool(spec: ToolSpec) -> Item:
    # Without `strict: false` the provider makes every optional member of the schema a required one.
    said = {"description": spec.description} if spec.description else {}
    return {"type": "function", "name": spec.name, **said, "parameters": schema_of(spec), "strict": False}


class _Nameless:
    """OpenAI looks an id up among stored items, of which there are none."""

    def message(self, text: str) -> Item:
        return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}

    def call(self, call_id: str, name: str, arguments: str) -> Item:
        return {"type": "function_call", "call_id": call_id, "name": name, "arguments": arguments}

    def reasoning(self, block: ReasoningBlock) -> Iterator[Item]:
        """Only what was encrypted is read again; a summary has to be there, if only empty."""
        if encrypted := text_of(block.payload.get("encrypted_content")):
            summary = objects_of(block.payload.get("summary"))
            yield {"type": "reasoning", "summary": summary, "encrypted_content": encrypted}


class _Named(_Nameless):
    """OpenRouter wants what the model said back as its API gives it: with ids, and finished."""

    def __init__(self) -> None:
        self._messages = 0
        self._seen: set[str] = set()

    def message(self, text: str) -> Item:
        self._messages += 1
        content = [{"type": "output_text", "text": text, "annotations": []}]
        own = {"id": f"msg_{self._messages}", "status": "completed"}
        return {"type": "message", "role": "assistant", **own, "content": content}

    def call(self, call_id: str, name: str, arguments: str) -> Item:
        own = {"id": f"fc_{call_id}", "status": "completed"}
        return super().call(call_id, name, arguments) | own

    def reasoning(self, block: ReasoningBlock) -> Iterator[Item]:
        """As it came; its id, which signatures may be bound to, stands only once in a request."""
        item = {name: block.payload[name] for name in _REASONING if block.payload.get(name) is not None}
        name = text_of(item.get("id")) or f"rs_{len(self._seen) + 1}"
        is_whole = item.get("type") == "reasoning" and isinstance(item.get("encrypted_content", ""), str)
        if is_whole and name not in self._seen:
            self._seen.add(name)
            yield {**item, "summary": objects_of(item.get("summary")), "id": name}
