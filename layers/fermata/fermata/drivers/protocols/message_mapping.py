"""What the mappers of all providers share: whose turn it is, names for calls, results and images as text."""

import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import assert_never

from fermata.domain.blocks import ImageBlock, ReasoningBlock, TextBlock, ToolCallBlock, ToolResultBlock
from fermata.domain.messages import Message
from fermata.domain.model_io import ModelRequest
from fermata.domain.tools import ToolSpec
from fermata.domain.weak_cache import WeakCache

CONTINUE_PROMPT = "Continue."
OMITTED_SCREENSHOTS_NOTE = "[{} screenshot(s) omitted: this provider delivers tool results as text only.]"

_UNPLAIN = re.compile(r"[^A-Za-z0-9_-]")
_NINE = re.compile(r"[A-Za-z0-9]{9}")
encode_compact_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode

CallIdFormatter = Callable[[str, int], str]
"""The name for a call id; from 2 on, another one each time it is asked with a higher number."""
ModelBlock = TextBlock | ToolCallBlock | ReasoningBlock


@dataclass
class CallResult:
    """One answered call: by the name it has on the wire, and by its tool's."""

    call_id: str
    tool_name: str
    block: ToolResultBlock


@dataclass
class MessageGroup:
    """Rows in a row of the same side. A model's turn holds the results of its calls, wherever they stood."""

    role: str
    blocks: list[ModelBlock] = field(default_factory=list)
    images: list[ImageBlock] = field(default_factory=list)
    results: list[CallResult] = field(default_factory=list)
    volatile: str = ""
    """What changes from turn to turn, behind the newest prompt (docs/decisions/0060)."""
    is_filler: bool = False
    """Nobody said it; the protocol wants a person to speak."""

    @property
    def texts(self) -> list[str]:
        return [block.text for block in self.blocks if isinstance(block, TextBlock)]

    @property
    def calls(self) -> list[ToolCallBlock]:
        return [block for block in self.blocks if isinstance(block, ToolCallBlock)]

    @property
    def reasoning(self) -> list[ReasoningBlock]:
        return [block for block in self.blocks if isinstance(block, ReasoningBlock)]

    def awaits_result(self, call_id: str) -> bool:
        """Whether it made this call and has no result of it."""
        made = any(call.tool_call_id == call_id for call in self.calls)
        return made and not any(result.call_id == call_id for result in self.results)


def group_messages(ask: ModelRequest, provider: str, fit: CallIdFormatter) -> list[MessageGroup]:
    """The conversation as turns that alternate, begin with a person and end with one or with results.

    Call ids are made to fit and unique. Reasoning of another provider or model is left out, and so is what no turn
    needs: empty texts, and reasoning that nothing follows.
    """
    turns: list[MessageGroup] = []
    names = CallIdMapper(fit)
    for message in ask.messages:
        if message.role == "tool":
            _add_result(turns, message, names)
        else:
            _add_message(turns, message, ask, provider, names)
    kept = [turn for turn in turns if _drop_trailing_reasoning(turn)]
    return _alternate_sides(kept, ask.volatile)


def _add_message(
    turns: list[MessageGroup], message: Message, ask: ModelRequest, provider: str, names: "CallIdMapper"
) -> None:
    if not turns or turns[-1].role != message.role or turns[-1].results:
        turns.append(MessageGroup(message.role))
    turn = turns[-1]
    for block in message.content:
        match block.kind:  # by name: an isinstance check of a pydantic model is slow, and histories are long
            case "text":
                if block.text.strip():
                    turn.blocks.append(block)
            case "image":
                if message.role == "user":
                    turn.images.append(block)
            case "toolCall":
                if message.role == "assistant":
                    name = names.map_call_id(block.tool_call_id)
                    same = name == block.tool_call_id
                    turn.blocks.append(block if same else block.model_copy(update={"tool_call_id": name}))
            case "reasoning":
                if message.role == "assistant" and (block.provider, block.model) == (provider, ask.model):
                    turn.blocks.append(block)
            case "toolResult":
                pass  # a result stands in a row of its own
            case "blob":
                raise ValueError("a blob must be fetched before it is sent to a provider")
            case _:
                assert_never(block)


def _add_result(turns: list[MessageGroup], message: Message, names: "CallIdMapper") -> None:
    """A result belongs to the newest turn of the model, whatever a person has said in between."""
    asked = next((turn for turn in reversed(turns) if turn.role == "assistant"), None)
    call_id = names.map_result_id(message.tool_call_id or "")
    for block in message.content:
        if block.kind == "blob":
            raise ValueError("a blob must be fetched before it is sent to a provider")
        if asked is not None and block.kind == "toolResult" and asked.awaits_result(call_id):
            asked.results.append(CallResult(call_id, message.tool_name or "", block))


def _drop_trailing_reasoning(turn: MessageGroup) -> bool:
    """Whether anything is left of the turn without reasoning that leads nowhere."""
    while turn.role == "assistant" and turn.blocks and turn.blocks[-1].kind == "reasoning":
        turn.blocks.pop()
    return bool(turn.blocks or turn.images)


def _alternate_sides(turns: list[MessageGroup], volatile: str) -> list[MessageGroup]:
    merged: list[MessageGroup] = []
    for turn in turns:
        if merged and merged[-1].role == turn.role and not merged[-1].results:
            merged[-1].blocks += turn.blocks
            merged[-1].images += turn.images
            merged[-1].results += turn.results
        else:
            merged.append(turn)
    if not merged or merged[0].role == "assistant":
        merged.insert(0, _filler_prompt())
    if merged[-1].role == "assistant" and not merged[-1].results:
        merged.append(_filler_prompt())
    if volatile.strip():
        ours = [turn for turn in merged if turn.role == "user"]
        prompt = next((turn for turn in reversed(ours) if not turn.is_filler), ours[-1])
        prompt.volatile = f"<context>\n{volatile}\n</context>"
    return merged


def _filler_prompt() -> MessageGroup:
    return MessageGroup("user", [TextBlock(text=CONTINUE_PROMPT)], is_filler=True)


class CallIdMapper:
    """Ids a provider accepts, unique in the whole request. The same history is given the same ones again."""

    def __init__(self, fit: CallIdFormatter) -> None:
        self._fit = fit
        self._used: set[str] = set()
        self._counts: dict[str, int] = {}
        self._latest: dict[str, str] = {}

    def map_call_id(self, call_id: str) -> str:
        count = self._counts.get(call_id, 0) + 1
        while (name := self._fit(call_id, count)) in self._used:
            count += 1
        self._used.add(name)
        self._counts[call_id] = count
        self._latest[call_id] = name
        return name

    def map_result_id(self, call_id: str) -> str:
        return self._latest.get(call_id) or self._fit(call_id, 1)


def plain_id_formatter(max_chars: int) -> CallIdFormatter:
    """Letters, digits, `_` and `-`, at most so many."""

    def fit(call_id: str, count: int) -> str:
        ending = "" if count == 1 else f"_{count}"
        return (_plain(call_id)[: max_chars - len(ending)] or "_") + ending

    return fit


@lru_cache(4096)
def _plain(text: str) -> str:
    return _UNPLAIN.sub("_", text)


def format_nine_character_id(call_id: str, count: int) -> str:
    """Mistral's rule: nine letters or digits."""
    if count == 1 and _NINE.fullmatch(call_id):
        return call_id
    return hashlib.sha256(f"{count}:{call_id}".encode("utf-8", "replace")).hexdigest()[:9]


def get_call_arguments(call: ToolCallBlock) -> dict[str, object]:
    """What a call was made with, as far as it is an object; half of one was never run and is not repeated."""
    return call.input if isinstance(call.input, dict) and not call.malformed else {}


def schema_with_properties(spec: ToolSpec) -> dict[str, object]:
    """Some providers refuse an object that does not list its members, even if it has none."""
    return spec.input_schema if "properties" in spec.input_schema else {**spec.input_schema, "properties": {}}


@WeakCache
def encode_result_data(block: ToolResultBlock) -> str:
    """What a success found, as JSON. History is sent again with every round, so this is encoded once."""
    return encode_compact_json({"ok": True} if block.data is None else block.data)


@WeakCache
def encode_call_arguments(call: ToolCallBlock) -> str:
    return encode_compact_json(get_call_arguments(call))


def format_result_text(block: ToolResultBlock) -> str:
    """A result for a provider that reads results as text: its data or its error, and how many images it misses."""
    text = encode_result_data(block) if block.ok else (block.error or "").strip() or "The tool failed."
    return f"{text}\n\n{OMITTED_SCREENSHOTS_NOTE.format(len(block.images))}" if block.images else text


def get_image_base64(image: ImageBlock) -> str:
    if image.data is None:
        raise ValueError("an image must be fetched before it is sent to a provider")
    return image.data


def image_to_data_url(image: ImageBlock) -> str:
    return f"data:{image.mime_type};base64,{get_image_base64(image)}"
