"""Run the chat of a stream, once, and say what its reader gets: the frames of a turn, or those of an answer."""

import json
from typing import Any

from fermata.aws.resources import Resources
from fermata.domain.caller import Caller
from fermata.domain.errors import Conflict, Forbidden, Gone, InvalidRequest, LogRewound
from fermata.domain.events import CancelledEvent
from fermata.domain.value_dataclass import value_dataclass
from fermata.planner_api.chat_store import ChatRun, is_chat_over, load_chat, settle_chat
from fermata.planner_api.route_chat import ChatAnswer, answer_chat, build_prompt
from fermata.plans.drafts.draft_rows import DraftLocation
from fermata.turns.end.stop_turn import stop_turn
from fermata.turns.read.follow_log import read_entries_after
from fermata.turns.start.start_turn import start_turn
from fermata.turns.turn import Turn, find_turn
from fermata.turns.turn_log import LogEntry
from fermata.wire.bodies.planner_frames import ErrorFrame, FinalFrame
from fermata.wire.bodies.planner_requests import PlannerChatBody
from fermata.wire.http.routing import RequestContext
from fermata.wire.renderers.planner_sse import FRAMES_PER_EVENT, encode_frame

MAX_STREAM_ID_CHARACTERS = 200
STREAM_GONE = "Stream context expired or not found"
STREAM_COMPLETED = "Stream already completed"
STREAM_RUNNING = "Pipeline already running"
ANSWER_SEQ = FRAMES_PER_EVENT
"""`_seq` of the only frame of an answer."""


@value_dataclass(frozen=True)
class OpenedStream:
    """What a reader gets: the log of a turn, or the bytes of an answer."""

    turn: Turn | None
    answer: bytes = b""


def open_stream(context: RequestContext, stream_id: str, after: int | None) -> OpenedStream:
    """Open the stream of a chat. The first reader runs it; one that returns with `after` reads it again.

    Args:
        stream_id: As the start of the chat has answered it.
        after: `_seq` of the last frame that the reader has; None for a first connection.

    Raises:
        InvalidRequest: The id can be none of a chat.
        Gone: There is no such chat, its minute is over, or it is done and `after` is missing.
        Forbidden: Another page has started it.
        Conflict: It runs, and `after` is missing; or another turn of the session runs.
    """
    resources, caller = context.resources, context.caller
    if not 0 < len(stream_id) <= MAX_STREAM_ID_CHARACTERS:
        raise InvalidRequest("'streamId' must be that of a started chat.")
    chat = load_chat(resources, caller, stream_id)
    if chat is None or chat.state == "cancelled":
        raise Gone(STREAM_GONE)
    if chat.origin and context.request.origin and chat.origin != context.request.origin:
        raise Forbidden("Origin mismatch")
    if chat.state == "pending":
        if not chat.is_startable(resources.clock.time()):
            raise Gone(STREAM_GONE)
        return _run_chat(context, chat)
    if after is None:
        raise Gone(STREAM_COMPLETED) if is_chat_over(resources, caller, chat) else Conflict(STREAM_RUNNING)
    return _reopen(resources, caller.tenant, chat, after)


def read_stream_entries(resources: Resources, turn: Turn, seen: int) -> list[LogEntry]:
    """Return the log of a stream from its beginning, from which its frames are rendered.

    Args:
        resources: Of the process.
        turn: That the stream shows.
        seen: `_seq` of the last frame that the reader has; 0 for none.

    Raises:
        LogRewound: There is no such frame (decision 0162).
    """
    entries = read_entries_after(resources, turn, 0)
    last_event = entries[-1].next_number - 1
    if seen // FRAMES_PER_EVENT > last_event:
        last_seq = (last_event + 1) * FRAMES_PER_EVENT - 1
        raise LogRewound(
            f"Frame {seen} does not exist: the last ones are below {last_seq}. Follow the stream from afterSeq=0.",
            last_seq=last_seq,
        )
    return entries


def _reopen(resources: Resources, tenant: str, chat: ChatRun, after: int) -> OpenedStream:
    if chat.answer is not None:
        return OpenedStream(None, _render_answer(chat.answer) if after < ANSWER_SEQ else b"")
    return OpenedStream(find_turn(resources, tenant, chat.turn))


def _run_chat(context: RequestContext, chat: ChatRun) -> OpenedStream:
    """Run a chat. Its id is the key of its turn, so that two readers at once start one turn; one of them reads it.

    A chat whose turn was started by a function that has died is still pending. What waits now may be that turn's plan.
    """
    resources, caller = context.resources, context.caller
    body = PlannerChatBody.model_validate(chat.body)
    location = DraftLocation(caller.tenant, chat.conversation)
    answer = answer_chat(resources, caller, location, body, chat.id)
    if isinstance(answer, ChatAnswer):
        kept = {"status": answer.status, "result": answer.result}
        if not settle_chat(resources, caller, chat, "answered", answer=json.dumps(kept)):
            raise Conflict(STREAM_RUNNING)
        return OpenedStream(None, _render_answer(kept))
    started = answer or start_turn(resources, caller, build_prompt(context, location, body, idempotency_key=chat.id))
    if not settle_chat(resources, caller, chat, "active", turn=started.turn.id):
        _stop_if_cancelled(resources, caller, chat, started.turn)
        raise Conflict(STREAM_RUNNING)
    return OpenedStream(started.turn)


def _stop_if_cancelled(resources: Resources, caller: Caller, chat: ChatRun, turn: Turn) -> None:
    """End the turn of a chat that was cancelled while it started: its client was told that it does not run."""
    settled = load_chat(resources, caller, chat.id)
    if settled is not None and settled.state == "cancelled":
        stop_turn(resources, turn, CancelledEvent())
        raise Gone(STREAM_GONE)


def _render_answer(kept: dict[str, Any]) -> bytes:
    status, result = kept["status"], kept["result"]
    frame = ErrorFrame(result=result, code=status) if status >= 400 else FinalFrame(result=result)
    return encode_frame(frame, ANSWER_SEQ)
