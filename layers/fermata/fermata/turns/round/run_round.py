"""One round: take it, ask the provider, and commit what it said."""

import json
from dataclasses import replace

from fermata.aws import observability
from fermata.conversations.history.image_selection import count_images
from fermata.conversations.history.token_estimate import MAX_TOKENS_PER_IMAGE
from fermata.credentials import last_used
from fermata.domain.blocks import Block, ToolCallBlock
from fermata.domain.errors import ProviderError
from fermata.domain.events import (
    ContextEvent,
    DoneEvent,
    ErrorEvent,
    Event,
    RoundRetractedEvent,
    RoundStartedEvent,
    TerminalEvent,
    ToolCallEvent,
    WarningEvent,
)
from fermata.domain.model_io import FinishReason, ModelResponse, TokenUsage
from fermata.drivers.transport.connection import ProviderConnection
from fermata.turns.accounting import ESTIMATED_CHARS_PER_TOKEN, add_usage, estimate_dead_request
from fermata.turns.commits import RoundCommit
from fermata.turns.end.end_turn import FinalRound, end_turn
from fermata.turns.pause import Pause, build_pause
from fermata.turns.round.model_request import ModelRequestOutcome, send_model_request, store_failed_requests
from fermata.turns.round.tool_calls import build_round_calls, run_instant_calls
from fermata.turns.round.turn_context import TurnContext
from fermata.turns.state import TurnState
from fermata.turns.transitions import apply_outputs
from fermata.turns.turn_log import Superseded, TurnEnded
from fermata.usage.ledger.ledger_store import RequestUsage
from fermata.usage.settlement import build_request_writes

MODEL_REFUSED_MESSAGE = "The model declined to answer this"
RESPONSE_CUT_OFF_MESSAGE = (
    "The answer was cut off at its longest allowed length. Ask for the rest, or for less at once."
)
INTERRUPTED_ROUND_ERROR = ErrorEvent(
    message="The answer was interrupted and could not be continued. Send your message again.",
    code="interrupted",
    retryable=True,
)


def begin_round(context: TurnContext) -> None:
    """Take the next round, or the current one from a function that died in the middle of it."""
    seen = context.log.state
    if seen.phase != "asking":
        take_round(context, seen)
    elif may_retry_round(context, seen):
        take_round(context, seen, (estimate_dead_request(context.resources, context.turn, seen, outcome="died"),))
    else:
        end_turn(
            context.resources,
            context.turn,
            context.log,
            INTERRUPTED_ROUND_ERROR,
            is_expected=lambda now: now.begun == seen.begun,
        )


def may_retry_round(context: TurnContext, state: TurnState) -> bool:
    """Tell whether the round may start over: a few times, and never after text that no reader can take back."""
    return context.retry_policy.may_restart_round(
        state.tries, was_text_shown=state.chars > 0, can_retract_text=context.turn.can_retract_text
    )


def take_round(context: TurnContext, seen_state: TurnState, replaced_requests: tuple[RequestUsage, ...] = ()) -> None:
    """Append roundStarted as the round's newest owner, with the ledger rows of the request it replaces."""
    estimate = seen_state.estimate or _estimate(context)
    context.log.append(
        lambda now: (*_retraction(now), build_round_started(context, now)),
        lambda _made, _before: build_request_writes(context.resources, replaced_requests),
        is_expected=lambda now: (
            (now.phase, now.begun, now.owner) == (seen_state.phase, seen_state.begun, seen_state.owner)
        ),
        build_state_changes=lambda now: {**add_usage(now, replaced_requests), "estimate": estimate},
    )
    context.log.owner = context.invocation.owner


def build_round_started(context: TurnContext, state: TurnState) -> RoundStartedEvent:
    same = state.phase in ("asking", "calls")
    number = state.round if same else state.round + 1
    return RoundStartedEvent(round=number, epoch=context.invocation.epoch, owner=context.invocation.owner)


def build_next_round_started(context: TurnContext, pause: Pause) -> tuple[RoundStartedEvent, ...]:
    """When that was the round's last call, the next round begins in the same breath."""
    if not pause.is_answered or not context.has_time_for_model_request:
        return ()
    return (build_round_started(context, context.log.state.replace(phase="ready")),)


def _retraction(standing: TurnState) -> tuple[Event, ...]:
    return (RoundRetractedEvent(round=standing.round),) if standing.phase == "asking" and standing.shown_chars else ()


def _estimate(work: TurnContext) -> int:
    """Prompt tokens of the first request, by what the conversation says; used when nobody reports the real number."""
    said = sum(_chars(block) for message in work.load_history() for block in message.content)
    pictures = sum(map(count_images, work.load_history()))
    return (said + len(work.turn.situation)) // ESTIMATED_CHARS_PER_TOKEN + pictures * MAX_TOKENS_PER_IMAGE


def _chars(block: Block) -> int:
    """Without pictures, whose characters are not what a provider counts."""
    if block.kind == "image":
        return 0
    without = block.model_copy(update={"images": None}) if block.kind == "toolResult" and block.images else block
    return len(json.dumps(without.to_wire()))


def run_round(context: TurnContext, connection: ProviderConnection) -> None:
    """Ask, and commit the reply as ROUND or END; a request that failed is made anew or ends the turn."""
    asked = ModelRequestOutcome()
    try:
        send_model_request(context, connection, asked)
        _take_in(context, asked)
    except (TurnEnded, Superseded):
        store_failed_requests(context, asked)
        raise


def _take_in(work: TurnContext, asked: ModelRequestOutcome) -> None:
    if asked.response is not None:
        _conclude(work, asked, asked.response)
        _count(asked, asked.response)
        last_used.record_use(work.resources, work.turn.tenant, work.turn.credential)
    elif asked.error is not None:
        _fail(work, asked, asked.error)


def _conclude(work: TurnContext, asked: ModelRequestOutcome, reply: ModelResponse) -> None:
    calls = [block for block in reply.blocks if isinstance(block, ToolCallBlock)]
    is_last = work.log.state.round >= work.turn.max_rounds
    if reply.stop is FinishReason.REFUSAL:
        _end(work, asked, reply, _refused(reply.refusal))
    elif calls and not is_last:
        _commit_calls(work, asked, reply, calls)
    elif reply.stop is FinishReason.PAUSE and not is_last:
        work.commit(replace(_commit(work, asked, reply), ready=True))
    else:
        _end(work, asked, reply, DoneEvent())


def _refused(reason: str | None) -> ErrorEvent:
    said = f"{MODEL_REFUSED_MESSAGE}: {reason.rstrip('.')}." if reason else f"{MODEL_REFUSED_MESSAGE}."
    return ErrorEvent(message=said, code="refused", retryable=False)


def _count(asked: ModelRequestOutcome, reply: ModelResponse) -> None:
    """Once the reply is told, so that nobody waits for it."""
    told = {"Rounds": 1.0, "PromptTokens": reply.tokens.context_tokens, "CompletionTokens": reply.tokens.completion}
    if asked.seconds_to_first_text is not None:
        told["TimeToFirstText"] = asked.seconds_to_first_text * 1000
    observability.emit_metrics(told)


def _commit_calls(
    work: TurnContext, asked: ModelRequestOutcome, reply: ModelResponse, blocks: list[ToolCallBlock]
) -> None:
    """Each call is told. In the same breath come the results of instant tools, the browser's first request, and,
    when nothing is left to be waited for, the next round.
    """
    calls, standing = (
        build_round_calls(work, blocks, is_truncated=reply.stop is FinishReason.MAX_TOKENS),
        work.log.state,
    )
    pause = build_pause(work.turn, standing.round, calls, planned_revision=standing.revision)
    pause = pause.with_token(work.invocation.token, work.invocation.epoch)
    progress = apply_outputs(
        pause, run_instant_calls(work, pause), now=work.resources.clock.time(), nonce=work.new_nonce()
    )
    told = tuple(
        ToolCallEvent(tool_call_id=call.tool_call_id, tool_name=work.to_wire_name(call.tool_name), input=call.input)
        for call in blocks
    )
    made = _commit(work, asked, reply)
    events = (*asked.unwritten_events, *told, *_noted(reply))
    work.commit(replace(made, events=events, progress=progress, then=build_next_round_started(work, progress.pause)))


def _commit(work: TurnContext, asked: ModelRequestOutcome, reply: ModelResponse) -> RoundCommit:
    return RoundCommit(
        tenant=work.turn.tenant,
        conversation=work.turn.conversation,
        turn=work.turn.id,
        round=work.log.state.round,
        events=(*asked.unwritten_events, *_noted(reply)),
        reply=reply.blocks,
        spent=asked.request_entries,
    )


def _end(work: TurnContext, asked: ModelRequestOutcome, reply: ModelResponse, terminal: TerminalEvent) -> None:
    """A call that nobody will run any more is not kept."""
    content: tuple[Block, ...] = tuple(block for block in reply.blocks if not isinstance(block, ToolCallBlock))
    last = FinalRound(
        (*asked.unwritten_events, *_noted(reply)), content, asked.request_entries, accounts_for_open_request=True
    )
    end_turn(work.resources, work.turn, work.log, terminal, last)


def _fail(work: TurnContext, asked: ModelRequestOutcome, error: ProviderError) -> None:
    standing = work.log.state
    observability.log_warning(
        "provider.failed", turn=work.turn.id, round=standing.round, code=error.code, status=error.status
    )
    # A request that failed before anything was seen has been repeated in place (drivers/retry_policy.py).
    was_seen = bool(standing.shown_chars or asked.unwritten_events)
    if error.retryable and was_seen and may_retry_round(work, standing):
        take_round(work, standing, asked.request_entries)
        return
    relief = {"provider_overflow": work.reduce_history, "provider_images": work.reduce_images}.get(error.code)
    may_reduce = work.retry_policy.may_reduce_request(standing.tries, was_text_shown=was_seen)
    if relief and may_reduce and relief():
        take_round(work, standing, asked.request_entries)
        return
    terminal = ErrorEvent(message=error.message, code=error.code, retryable=error.retryable)
    last = FinalRound(asked.unwritten_events, (), asked.request_entries, accounts_for_open_request=True)
    end_turn(work.resources, work.turn, work.log, terminal, last)


def _noted(reply: ModelResponse) -> tuple[Event, ...]:
    """How full the window is, as far as it is known; what the driver warns of; an answer that was cut off unasked."""
    calls_nothing = not any(block.kind == "toolCall" for block in reply.blocks)
    cut = RESPONSE_CUT_OFF_MESSAGE if reply.stop is FinishReason.MAX_TOKENS and calls_nothing else None
    context = (_context(reply.tokens),) if reply.tokens.context_tokens else ()
    return (*context, *(WarningEvent(message=said) for said in (reply.warning, cut) if said))


def _context(tokens: TokenUsage) -> ContextEvent:
    return ContextEvent(
        prompt_tokens=tokens.prompt,
        context_tokens=tokens.context_tokens,
        cache_read_tokens=tokens.cache_read,
        cache_creation_tokens=tokens.cache_creation,
    )
