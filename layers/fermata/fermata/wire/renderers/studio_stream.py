"""Render the log of a turn as the server-sent events of the studio's own clients (decision 0474).

Events have no names: their data says what they are. In their order: `conversation` {id}, `text` {content}, `tool_use`
{id, name}, `tool_result` {id, name, result}, `error` {message}, and one `done` {usage, affected} at the end.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from fermata.domain.events import CancelledEvent, ErrorEvent, Event, UsageEvent
from fermata.domain.value_dataclass import value_dataclass
from fermata.wire.renderers.turn_fold import TurnFold
from fermata.wire.renderers.turn_steps import (
    CallAnswered,
    CallShown,
    HoldShown,
    RoundBegun,
    TextPiece,
    TextRetracted,
    TurnOver,
    TurnStep,
    UsageShown,
)

STUDIO_CUT_OFF_WORDS = "The answer goes on, and this connection has reached its limit. Read the conversation later."
STUDIO_CANCELLED_WORDS = "The turn was cancelled."
_HELD_WORDS = "A person has to decide about a call, until {until}. The answer goes on then."


@value_dataclass(frozen=True)
class StudioCall:
    """A call that was answered: what clients are told of it, and what it has changed."""

    call_id: str
    tool_name: str
    input: Any
    ok: bool
    result: Any

    def to_wire(self) -> dict[str, Any]:
        """Return the call as clients read it. Its input is not among that."""
        return {"id": self.call_id, "name": self.tool_name, "result": self.result}


ListChanges: TypeAlias = Callable[[Sequence[StudioCall]], dict[str, Any]]
"""Returns what calls have changed, as clients read it."""


@dataclass
class StudioAnswer:
    """An answer as far as it has come. `texts` has one text for each round."""

    conversation: str
    texts: list[list[str]] = field(default_factory=lambda: [[]])
    inputs: dict[str, Any] = field(default_factory=dict)
    calls: list[StudioCall] = field(default_factory=list)
    usage: dict[str, int] = field(default_factory=lambda: {"inputTokens": 0, "outputTokens": 0})
    end: ErrorEvent | CancelledEvent | None = None

    def to_wire(self) -> dict[str, Any]:
        """Return the answer for a client that reads it at once."""
        texts = ["".join(pieces).strip() for pieces in self.texts]
        results = [call.to_wire() for call in self.calls]
        return {
            "conversationId": self.conversation,
            "message": "\n\n".join(filter(None, texts)),
            **({"toolResults": results} if results else {}),
            "usage": self.usage,
        }


class StudioRenderer:
    """Renders a turn from its first entry on."""

    def __init__(self, fold: TurnFold, conversation: str, list_changes: ListChanges, *, is_whole: bool = False) -> None:
        """Begin before the first entry.

        Args:
            fold: The fold of the turn.
            conversation: The id of its conversation.
            list_changes: Returns what the calls have changed. It is asked once, at the end.
            is_whole: Render nothing and end where a person has to decide, for a client that reads the answer at once.
        """
        self.answer = StudioAnswer(conversation)
        self._fold = fold
        self._list_changes = list_changes
        self._is_whole = is_whole
        self._has_begun = False
        self._held_until = ""

    @property
    def waits_for_person(self) -> bool:
        """Whether a person has to decide before the turn goes on."""
        return not self._fold.is_over and (self._fold.waits_for_client or bool(self._held_until))

    def render_events(self, events: Sequence[Event]) -> bytes:
        """Return the events of an entry."""
        frames = [] if self._has_begun else [{"type": "conversation", "id": self.answer.conversation}]
        self._has_begun = True
        for _, step in self._fold.fold(events):
            frames += self._render(step)
        return b"" if self._is_whole else encode_studio_frames(frames)

    def is_response_over(self) -> bool:
        """Return whether the turn is over; or waits for a person, for a client that reads the answer at once."""
        return self._fold.is_over or (self._is_whole and self.waits_for_person)

    def render_end(self) -> bytes:
        """Return what comes after the last entry: the end of a stream whose turn goes on."""
        if self._fold.is_over or self._is_whole:
            return b""
        words = _HELD_WORDS.format(until=self._held_until) if self._held_until else STUDIO_CUT_OFF_WORDS
        return encode_studio_frames([{"type": "error", "message": words}, self._build_done()])

    def _render(self, step: TurnStep) -> Iterator[dict[str, Any]]:
        answer = self.answer
        match step:
            case RoundBegun():
                answer.texts.append([])
            case TextPiece():
                answer.texts[-1].append(step.text)
                yield {"type": "text", "content": step.text}
            case TextRetracted():
                answer.texts[-1].clear()
            case CallShown():
                is_new = step.call_id not in answer.inputs
                answer.inputs[step.call_id] = step.input
                if is_new:
                    yield {"type": "tool_use", "id": step.call_id, "name": step.tool_name}
            case CallAnswered():
                self._held_until = ""
                call = self._take_answer(step)
                answer.calls.append(call)
                yield {"type": "tool_result"} | call.to_wire()
            case HoldShown():
                self._held_until = step.until
            case UsageShown():
                answer.usage = _describe_usage(step.usage)
            case TurnOver():
                yield from self._end(step)

    def _take_answer(self, step: CallAnswered) -> StudioCall:
        result = step.output
        if not step.ok:
            words = step.denial_reason or "A person has denied this call." if step.is_denied else step.error
            own = result if isinstance(result, dict) else {}
            result = {"error": words} | own
        return StudioCall(step.call_id, step.tool_name, self.answer.inputs.get(step.call_id), step.ok, result)

    def _end(self, step: TurnOver) -> Iterator[dict[str, Any]]:
        if isinstance(step.end, ErrorEvent | CancelledEvent):
            self.answer.end = step.end
            words = step.end.message if isinstance(step.end, ErrorEvent) else STUDIO_CANCELLED_WORDS
            yield {"type": "error", "message": words}
        yield self._build_done()

    def _build_done(self) -> dict[str, Any]:
        return {"type": "done", "usage": self.answer.usage, "affected": self._list_changes(self.answer.calls)}


def encode_studio_frames(frames: Sequence[dict[str, Any]]) -> bytes:
    """Return server-sent events without names, each with its data on one line."""
    return "".join(
        f"data: {json.dumps(frame, ensure_ascii=False, separators=(',', ':'))}\n\n" for frame in frames
    ).encode()


def _describe_usage(usage: UsageEvent) -> dict[str, int]:
    return {"inputTokens": usage.prompt_tokens, "outputTokens": usage.completion_tokens}
