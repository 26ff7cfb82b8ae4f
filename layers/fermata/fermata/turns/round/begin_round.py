"""Take a round: append roundStarted as its newest owner, which supersedes every older invocation."""

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from fermata.conversations.history.image_selection import count_images
from fermata.conversations.history.token_estimate import MAX_TOKENS_PER_IMAGE
from fermata.domain.blocks import Block
from fermata.domain.events import ErrorEvent, Event, RoundRetractedEvent, RoundStartedEvent
from fermata.turns.accounting import ESTIMATED_CHARS_PER_TOKEN, add_usage, estimate_dead_request
from fermata.turns.end.end_turn import end_turn
from fermata.turns.pause import Pause
from fermata.turns.round.turn_context import TurnContext
from fermata.turns.turn_state_from_log import TurnState
from fermata.usage.ledger.ledger_store import RequestUsage
from fermata.usage.usage_writes import build_request_writes

INTERRUPTED_ROUND_ERROR = ErrorEvent(
    message="The answer was interrupted and could not be continued. Send your message again.",
    code="interrupted",
    retryable=True,
)


def begin_round(context: TurnContext) -> None:
    """Take the next round, or the current one from a function that died in the middle of it.

    A round that may not be repeated ends the turn with an error.

    Raises:
        StaleState: Another writer has moved the turn on.
    """
    seen_state = context.log.state
    if seen_state.phase != "asking":
        take_round(context, seen_state)
    elif may_retry_round(context, seen_state):
        take_round(context, seen_state, partial(_estimate_open_request, context), partial(may_retry_round, context))
    else:
        end_turn(
            context.resources,
            context.turn,
            context.log,
            INTERRUPTED_ROUND_ERROR,
            is_expected=lambda now: now.round_started_number == seen_state.round_started_number,
        )


def _estimate_open_request(context: TurnContext, state: TurnState) -> tuple[RequestUsage, ...]:
    if not state.has_open_request or context.turn.direct_call is not None:
        return ()
    return (estimate_dead_request(context.resources, context.turn, state, outcome="died"),)


def may_retry_round(context: TurnContext, state: TurnState) -> bool:
    """Return whether the round may start over: a few times, and never after text that the clients cannot retract."""
    return context.retry_policy.may_restart_round(
        state.request_attempts, was_text_shown=state.text_chars > 0, can_retract_text=context.turn.can_retract_text
    )


def no_replaced_usages(_before: TurnState) -> tuple[RequestUsage, ...]:
    return ()


def take_round(
    context: TurnContext,
    seen_state: TurnState,
    build_replaced_usages: Callable[[TurnState], tuple[RequestUsage, ...]] = no_replaced_usages,
    is_expected: Callable[[TurnState], bool] = lambda _: True,
) -> None:
    """Append roundStarted, with the ledger rows of the requests that the new one replaces.

    Args:
        build_replaced_usages: Returns their usage, given the state right before the append. An owner that still works
            may have sent its request, or shown more of the response, since `seen_state` (decision 0175).
        is_expected: Whether the round may still be taken in that state.

    Raises:
        StaleState: The round has changed since `seen_state`, or `is_expected` returned False.
    """
    if seen_state.phase != "calls":
        context.prepare_model_request()
    estimated_prompt_tokens = seen_state.estimated_prompt_tokens or _estimate_prompt_tokens(context)
    seen_start = (seen_state.phase, seen_state.round_started_number, seen_state.owner)
    context.log.append(
        lambda before: (*_build_retraction(before), build_round_started(context, before)),
        lambda _log_entry, before: build_request_writes(context.resources, build_replaced_usages(before)),
        is_expected=lambda now: (now.phase, now.round_started_number, now.owner) == seen_start and is_expected(now),
        update_state=lambda before, after: replace(
            add_usage(after, build_replaced_usages(before)), estimated_prompt_tokens=estimated_prompt_tokens
        ),
    )
    context.log.owner = context.invocation.owner


def build_round_started(context: TurnContext, state: TurnState) -> RoundStartedEvent:
    is_same_round = state.phase in ("asking", "calls")
    number = state.round if is_same_round else state.round + 1
    return RoundStartedEvent(
        round=number,
        epoch=context.invocation.epoch,
        owner=context.invocation.owner,
        awaits_budget_hold=_awaits_budget_hold(context, state) or None,
    )


def _awaits_budget_hold(context: TurnContext, state: TurnState) -> bool:
    """Return whether the request needs a budget hold that is still to be taken; START has taken that of the first."""
    if not context.turn.has_budget or state.phase == "calls":
        return False
    from fermata.usage.budgets.holds import HOLD_LIFETIME_SECONDS  # imported here because most turns have no budget

    if context.turn.parent:  # the start of a sub-agent takes no hold
        return True
    hold_expires = context.turn.started_ms / 1000 + HOLD_LIFETIME_SECONDS
    return state.phase != "started" or context.resources.clock.time() >= hold_expires


def build_next_round_started(context: TurnContext, pause: Pause) -> tuple[RoundStartedEvent, ...]:
    """Return the start of the next round if `pause` is answered, so that it is part of the same commit."""
    if not pause.are_calls_done or not context.has_time_for_model_request:
        return ()
    return (build_round_started(context, replace(context.log.state, phase="ready")),)


def _build_retraction(state: TurnState) -> tuple[Event, ...]:
    return (RoundRetractedEvent(round=state.round),) if state.phase == "asking" and state.streamed_chars else ()


def _estimate_prompt_tokens(context: TurnContext) -> int:
    """Estimate the tokens of the turn's first request, for providers and requests that report no real number."""
    messages = context.load_history()
    chars = sum(_count_chars(block) for message in messages for block in message.content)
    image_tokens = sum(map(count_images, messages)) * MAX_TOKENS_PER_IMAGE
    return (chars + len(context.turn.situation)) // ESTIMATED_CHARS_PER_TOKEN + image_tokens


def _count_chars(block: Block) -> int:
    """Count characters without those of images, which providers count in another way."""
    if block.kind in ("image", "audio"):
        return 0
    if block.kind == "toolResult" and block.images:
        block = block.model_copy(update={"images": None})
    return len(json.dumps(block.to_wire()))
