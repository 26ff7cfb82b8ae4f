"""Read scripts: lists of answers, one for each request to the demo model."""

from collections.abc import Iterable
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from local.demo_model.model_answer import ModelAnswer, ToolCall

MARKER_FORMAT = "[[script:{}]]"


class _ScriptModel(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="forbid", frozen=True)


class ScriptedToolCall(_ScriptModel):
    name: str
    input: dict[str, Any] = Field(default_factory=dict)
    raw: str | None = None
    """Argument text to stream instead of `input`."""


class ScriptedError(_ScriptModel):
    type: str = "overloaded_error"
    message: str = "Overloaded"


class ScriptStep(_ScriptModel):
    """One answer and its faults. Faults happen once `after` characters of text are sent.

    `status` responds with an HTTP error at once. `stall` waits silently that many seconds, `hold_until_file` with signs
    of life until a file of that path exists; then the answer goes on. `error` is an error event in the stream. `cut`
    closes the connection in mid-stream. `single_bytes` sends every byte on its own.
    """

    text: str = ""
    thinking: str = ""
    tool_calls: tuple[ScriptedToolCall, ...] = ()
    stop: str | None = None
    refusal: str = ""
    usage: dict[str, Any] | None = None
    first_ms: float | None = None
    chunk_ms: float | None = None
    chunks: int | None = None

    status: int | None = None
    retry_after: str | float | None = None
    after: int = 10**9
    stall: float = 0
    hold_until_file: str | None = None
    error: ScriptedError | None = None
    cut: bool = False
    single_bytes: bool = False

    def to_answer(self) -> ModelAnswer:
        calls = tuple(ToolCall(call.name, call.input, call.raw) for call in self.tool_calls)
        return ModelAnswer(
            text=self.text, tool_calls=calls, thinking=self.thinking, forced_stop_reason=self.stop, refusal=self.refusal
        )


class Script(_ScriptModel):
    """Answers requests whose API key is `key`, or whose prompt contains `[[script:key]]` or `match`.

    The n-th request gets the n-th step (`by="request"`), or the request of a turn's n-th round does (`by="round"`, so
    that many turns can follow one script at once). After the last step the rules answer or, with `repeat_last`, the
    last step again.
    """

    key: str
    match: str | None = None
    steps: tuple[ScriptStep, ...]
    by: Literal["request", "round"] = "request"
    repeat_last: bool = False

    def matches(self, api_key: str, prompt: str) -> bool:
        named = api_key == self.key or MARKER_FORMAT.format(self.key) in prompt
        return named or (self.match is not None and self.match in prompt)

    def step_at(self, position: int) -> ScriptStep | None:
        if position < len(self.steps):
            return self.steps[position]
        return self.steps[-1] if self.repeat_last and self.steps else None


class ScriptStore:
    """The scripts, of which the newest matching one answers a request."""

    def __init__(self) -> None:
        self._scripts: dict[str, Script] = {}
        self._taken: dict[str, int] = {}

    def add_script(self, script: Script) -> None:
        self._scripts[script.key] = script
        self._taken[script.key] = 0

    def delete_script(self, key: str) -> None:
        self._scripts.pop(key, None)

    def find_script(self, api_key: str, prompt: str) -> Script | None:
        scripts: Iterable[Script] = reversed(list(self._scripts.values()))
        return next((script for script in scripts if script.matches(api_key, prompt)), None)

    def take_step(self, script: Script, round_: int) -> ScriptStep | None:
        taken = self._taken[script.key]
        self._taken[script.key] = taken + 1
        return script.step_at(round_ if script.by == "round" else taken)
