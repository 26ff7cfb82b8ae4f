"""What the mappers of all providers share: whose turn it is, names for calls, results and images as text."""

import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import assert_never

from fermata.words.blocks import ImageBlock, ReasoningBlock, TextBlock, ToolCallBlock, ToolResultBlock
from fermata.words.messages import Message
from fermata.words.model import Ask
from fermata.words.once import Once
from fermata.words.tools import ToolSpec

GO_ON = "Continue."
SCREENSHOTS = "[{} screenshot(s) omitted: this provider delivers tool results as text only.]"

_UNPLAIN = re.compile(r"[^A-Za-z0-9_-]")
_NINE = re.compile(r"[A-Za-z0-9]{9}")
to_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode

Fit = Callable[[str, int], str]
"""The name for a call id; from 2 on, another one each time it is asked with a higher number."""
Said = TextBlock | ToolCallBlock | ReasoningBlock


@dataclass
class Result:
    """One answered call: by the name it has on the wire, and by its tool's."""

    call_id: str
    tool_name: str
    block: ToolResultBlock


@dataclass
class Turn:
    """Rows in a row of the same side. A model's turn holds the results of its calls, wherever they stood."""

    role: str
    said: list[Said] = field(default_factory=list)
    images: list[ImageBlock] = field(default_factory=list)
    results: list[Result] = field(default_factory=list)
    volatile: str = ""
    """What changes from turn to turn, behind the newest prompt (docs/decisions/0060)."""
    nudge: bool = False
    """Nobody said it; the protocol wants a person to speak."""

    @property
    def texts(self) -> list[str]:
        return [block.text for block in self.said if isinstance(block, TextBlock)]

    @property
    def calls(self) -> list[ToolCallBlock]:
        return [block for block in self.said if isinstance(block, ToolCallBlock)]

    @property
    def reasoning(self) -> list[ReasoningBlock]:
        return [block for block in self.said if isinstance(block, ReasoningBlock)]

    def waits_for(self, call_id: str) -> bool:
        """Whether it made this call and has no result of it."""
        made = any(call.tool_call_id == call_id for call in self.calls)
        return made and not any(result.call_id == call_id for result in self.results)


def turns_of(ask: Ask, provider: str, fit: Fit) -> list[Turn]:
    """The conversation as turns that alternate, begin with a person and end with one or with results.

    Call ids are made to fit and unique. Reasoning of another provider or model is left out, and so is what no turn
    needs: empty texts, and reasoning that nothing follows.
    """
    turns: list[Turn] = []
    names = CallIds(fit)
    for message in ask.messages:
        if message.role == "tool":
            _answer(turns, message, names)
        else:
            _speak(turns, message, ask, provider, names)
    kept = [turn for turn in turns if _trimmed(turn)]
    return _framed(kept, ask.volatile)


def _speak(turns: list[Turn], message: Message, ask: Ask, provider: str, names: "CallIds") -> None:
    if not turns or turns[-1].role != message.role or turns[-1].results:
        turns.append(Turn(message.role))
    turn = turns[-1]
    for block in message.content:
        match block.kind:  # by name: an isinstance check of a pydantic model is slow, and histories are long
            case "text":
                if block.text.strip():
                    turn.said.append(block)
            case "image":
                if message.role == "user":
                    turn.images.append(block)
            case "toolCall":
                if message.role == "assistant":
                    name = names.call(block.tool_call_id)
                    same = name == block.tool_call_id
                    turn.said.append(block if same else block.model_copy(update={"tool_call_id": name}))
            case "reasoning":
                if message.role == "assistant" and (block.provider, block.model) == (provider, ask.model):
                    turn.said.append(block)
            case "toolResult":
                pass  # a result stands in a row of its own
            case "blob":
                raise ValueError("a blob must be fetched before it is sent to a provider")
            case _:
                assert_never(block)


def _answer(turns: list[Turn], message: Message, names: "CallIds") -> None:
    """A result belongs to the newest turn of the model, whatever a person has said in between."""
    asked = next((turn for turn in reversed(turns) if turn.role == "assistant"), None)
    call_id = names.result(message.tool_call_id or "")
    for block in message.content:
        if block.kind == "blob":
            raise ValueError("a blob must be fetched before it is sent to a provider")
        if asked is not None and block.kind == "toolResult" and asked.waits_for(call_id):
            asked.results.append(Result(call_id, message.tool_name or "", block))


def _trimmed(turn: Turn) -> bool:
    """Whether anything is left of the turn without reasoning that leads nowhere."""
    while turn.role == "assistant" and turn.said and turn.said[-1].kind == "reasoning":
        turn.said.pop()
    return bool(turn.said or turn.images)


def _framed(turns: list[Turn], volatile: str) -> list[Turn]:
    merged: list[Turn] = []
    for turn in turns:
        if merged and merged[-1].role == turn.role and not merged[-1].results:
            merged[-1].said += turn.said
            merged[-1].images += turn.images
            merged[-1].results += turn.results
        else:
            merged.append(turn)
    if not merged or merged[0].role == "assistant":
        merged.insert(0, _go_on())
    if merged[-1].role == "assistant" and not merged[-1].results:
        merged.append(_go_on())
    if volatile.strip():
        ours = [turn for turn in merged if turn.role == "user"]
        prompt = next((turn for turn in reversed(ours) if not turn.nudge), ours[-1])
        prompt.volatile = f"<context>\n{volatile}\n</context>"
    return merged


def _go_on() -> Turn:
    return Turn("user", [TextBlock(text=GO_ON)], nudge=True)


class CallIds:
    """Ids a provider accepts, unique in the whole request. The same history is given the same ones again."""

    def __init__(self, fit: Fit) -> None:
        self._fit = fit
        self._used: set[str] = set()
        self._counts: dict[str, int] = {}
        self._latest: dict[str, str] = {}

    def call(self, call_id: str) -> str:
        count = self._counts.get(call_id, 0) + 1
        while (name := self._fit(call_id, count)) in self._used:
            count += 1
        self._used.add(name)
        self._counts[call_id] = count
        self._latest[call_id] = name
        return name

    def result(self, call_id: str) -> str:
        return self._latest.get(call_id) or self._fit(call_id, 1)


def plain(limit: int) -> Fit:
    """Letters, digits, `_` and `-`, at most so many."""

    def fit(call_id: str, count: int) -> str:
        ending = "" if count == 1 else f"_{count}"
        return (_plain(call_id)[: limit - len(ending)] or "_") + ending

    return fit


@lru_cache(4096)
def _plain(text: str) -> str:
    return _UNPLAIN.sub("_", text)


def nine_characters(call_id: str, count: int) -> str:
    """Mistral's rule: nine letters or digits."""
    if count == 1 and _NINE.fullmatch(call_id):
        return call_id
    return hashlib.sha256(f"{count}:{call_id}".encode("utf-8", "replace")).hexdigest()[:9]


def arguments_of(call: ToolCallBlock) -> dict[str, object]:
    """What a call was made with, as far as it is an object; half of one was never run and is not repeated."""
    return call.input if isinstance(call.input, dict) and not call.malformed else {}


def schema_of(spec: ToolSpec) -> dict[str, object]:
    """Some providers refuse an object that does not list its members, even if it has none."""
    return spec.input_schema if "properties" in spec.input_schema else {**spec.input_schema, "properties": {}}


@Once
def data_text(block: ToolResultBlock) -> str:
    """What a success found, as JSON. History is sent again with every round, so this is encoded once."""
    return to_json({"ok": True} if block.data is None else block.data)


@Once
def arguments_text(call: ToolCallBlock) -> str:
    return to_json(arguments_of(call))


def result_text(block: ToolResultBlock) -> str:
    """A result for a provider that reads results as text: its data or its error, and how many images it misses."""
    text = data_text(block) if block.ok else (block.error or "").strip() or "The tool failed."
    return f"{text}\n\n{SCREENSHOTS.format(len(block.images))}" if block.images else text


def base64_of(image: ImageBlock) -> str:
    if image.data is None:
        raise ValueError("an image must be fetched before it is sent to a provider")
    return image.data


def data_url(image: ImageBlock) -> str:
    return f"data:{image.mime_type};base64,{base64_of(image)}"
