"""Folds the lines of Ollama's answer into blocks. No I/O and no clock: the same lines give the same pieces."""

from collections.abc import Iterator, Mapping
from typing import Any

from fermata.drivers.arguments import arguments, whole, whole_value
from fermata.drivers.calling import named_apart
from fermata.drivers.counting import bucketed, cut_short
from fermata.drivers.members import name_of, object_of, objects_of, text_of
from fermata.words.blocks import Block, ReasoningBlock, TextBlock, ToolCallBlock
from fermata.words.model import Piece, ReasoningDelta, Reply, Stop, TextDelta, Tokens

PROVIDER = "ollama"
LABEL = "Ollama"


class Draft:
    def __init__(self, model: str, request: bytes, expected: int) -> None:
        self.complete = False
        self.finished = False
        self.failure: Any = None
        self._model = model
        self._request = request
        self._expected = expected
        self._text: list[str] = []
        self._thoughts: list[str] = []
        self._calls: list[ToolCallBlock] = []
        self._last: dict[str, Any] = {}

    @property
    def counted(self) -> bool:
        return bool(self._last)

    def take(self, event: dict[str, Any]) -> Iterator[Piece]:
        if error := event.get("error"):
            self.failure = error if isinstance(error, dict) else {"message": str(error), "type": "server_error"}
            return
        message = object_of(event.get("message"))
        if text := text_of(message.get("thinking")):
            self._thoughts.append(text)
            yield ReasoningDelta(text=text)
        if text := text_of(message.get("content")):
            self._text.append(text)
            yield TextDelta(text=text)
        self._calls += [_call(call) for call in objects_of(message.get("tool_calls"))]
        if event.get("done"):
            told = {name: value for name, value in event.items() if name != "message" and value is not None}
            self._last, self.complete = whole_value(told), True

    def close(self) -> None:
        """The last line says so itself."""

    @property
    def tokens(self) -> Tokens:
        count = self._last.get
        cached = {"cached_tokens": count("prompt_eval_cached_count")}
        return bucketed(self._last, count("prompt_eval_count"), count("eval_count"), cached)

    def reply(self) -> Reply:
        stop = Stop.TOOL_CALLS if self._calls else Stop.END
        if self._last.get("done_reason") == "length":
            stop = Stop.MAX_TOKENS
        return Reply(
            blocks=named_apart([*self._said(), *self._calls], self._request),
            stop=stop,
            tokens=self.tokens,
            tokens_known="eval_count" in self._last,
            warning=cut_short(LABEL, self._expected, self.tokens),
        )

    def _said(self) -> Iterator[Block]:
        if self._thoughts and self._calls:  # only what led to a call is ever said again
            payload = {"thinking": whole("".join(self._thoughts))}
            yield ReasoningBlock(provider=PROVIDER, model=self._model, payload=payload)
        text = whole("".join(self._text))
        if text.strip():
            yield TextBlock(text=text)


def _call(told: Mapping[str, Any]) -> ToolCallBlock:
    """Calls come whole, their arguments as an object; some proxies write them as text."""
    function = object_of(told.get("function"))
    value, malformed = function.get("arguments"), False
    if isinstance(value, str):
        value, malformed = arguments(value)
    return ToolCallBlock(
        tool_call_id=name_of(told.get("id")),
        tool_name=name_of(function.get("name")),
        input={} if value is None else whole_value(value),
        malformed=malformed or None,
    )
