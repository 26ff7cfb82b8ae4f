"""Run the model request of a round and commit its response."""

from dataclasses import replace
from typing import TYPE_CHECKING

from fermata.aws import observability
from fermata.credentials import last_used
from fermata.domain.blocks import Block, ToolCallBlock
from fermata.domain.errors import ProviderError
from fermata.domain.events import ContextEvent, DoneEvent, ErrorEvent, Event, TerminalEvent, ToolCallEvent, WarningEvent
from fermata.domain.model_io import FinishReason, ModelResponse, TokenUsage
from fermata.drivers.retry_policy import Failure
from fermata.drivers.transport.connection_interface import ProviderConnection
from fermata.turns.accounting import add_usage
from fermata.turns.approvals.request_approval import CallJudge, build_approval_requests
from fermata.turns.call_transitions import Transition, apply_outputs
from fermata.turns.end.end_turn import FinalRound, end_turn
from fermata.turns.pause import build_pause
from fermata.turns.round.begin_round import build_next_round_started, may_retry_round, take_round
from fermata.turns.round.model_request import ModelRequestOutcome, send_model_request
from fermata.turns.round.stop_rules import apply_finish_hooks, find_invalid_input, is_last_step
from fermata.turns.round.tool_calls import build_round_calls, run_instant_calls
from fermata.turns.round.turn_context import TurnContext
from fermata.turns.round_commit import PauseChanged, RoundCommit, keep_state

if TYPE_CHECKING:
    from fermata.turns.sub_agents.start_children import StartedChildren

MODEL_REFUSED_MESSAGE = "The model declined to answer this"
RESPONSE_CUT_OFF_MESSAGE = "The answer was cut off at its maximum length. Ask for the rest, or for less at once."
ROUND_LIMIT_MESSAGE = (
    "The model wanted to do more, but this turn has reached its limit of {} steps. "
    "What it did is kept: ask it to go on."
)
NO_WORDS_MESSAGE = "The model ended its work without a word. Ask it what it did, or what is missing."
OVERFLOW_MESSAGE = (
    "This conversation is longer than the model can read, even shortened. It is saved. Begin a new conversation, "
    "send a smaller page or prompt, or choose a model with a larger context window. ({})"
)
UNSTORABLE_ROUND_ERROR = ErrorEvent(
    message="The turn could not be stored, which is an error of the service. Send your message again.",
    code="broken",
    retryable=True,
)


def run_round(context: TurnContext, connection: ProviderConnection) -> None:
    """Send the request of a round that this invocation owns, and commit its outcome.

    A response is committed as ROUND, or as END when the turn is done. After an error the round is taken again, or the
    turn ends with the error.

    Raises:
        TurnEnded, Superseded: Another writer was faster; nothing more is to be done.
    """
    outcome = send_model_request(context, connection)
    try:
        if isinstance(outcome.result, ProviderError):
            _retry_or_end(context, outcome, outcome.result)
        else:
            _commit_response(context, outcome, outcome.result)
    except PauseChanged:
        _end_after_refusal(context, outcome)


def _commit_response(context: TurnContext, outcome: ModelRequestOutcome, response: ModelResponse) -> None:
    response = context.limits.mark_response(response)
    calls = [block for block in response.blocks if isinstance(block, ToolCallBlock)]
    forced = outcome.forced_answer
    if not calls and not forced and (call := _find_call_in_text(context, response)):
        response, calls = response.model_copy(update={"blocks": (*response.blocks, call)}), [call]
    if response.stop is FinishReason.REFUSAL:
        _end_turn(context, outcome, response, _build_refusal_error(response.refusal))
    elif calls and outcome.may_call_tools:
        is_cut_off = response.stop is FinishReason.MAX_TOKENS
        if not is_cut_off and (invalid := find_invalid_input(context, calls)):
            _end_turn(context, outcome, response, invalid)
        else:
            _commit_calls(context, outcome, response, calls)
    elif response.stop is FinishReason.PAUSE and not forced:
        context.commit(replace(_build_commit(context, outcome, response), is_ready_for_next_round=True))
    else:
        warnings = _warn_of_forced_answer(context, outcome, wanted_tools=bool(calls))
        _end_turn(context, outcome, response, DoneEvent(), warnings)
    # After the commit, so that no client waits for it.
    _emit_metrics(outcome, response)
    if not context.log.state.has_open_request:  # the next round's request is sent first (decision 0146)
        last_used.record_use(context.resources, context.turn.tenant, context.turn.credential)


def _find_call_in_text(context: TurnContext, response: ModelResponse) -> ToolCallBlock | None:
    """Return the call that the model has written into its text, where its agent reads texts for calls."""
    if response.stop is not FinishReason.END or not context.agent.text_reader:
        return None
    text = "".join(block.text for block in response.blocks if block.kind == "text")
    return context.agent.find_call_in_text(text, f"text_{context.log.state.round}")


def _warn_of_forced_answer(
    context: TurnContext, outcome: ModelRequestOutcome, *, wanted_tools: bool
) -> tuple[WarningEvent, ...]:
    """Tell the user why the turn ends: the model was stuck, or wanted to go on in the turn's last round."""
    forced = outcome.forced_answer
    if forced and forced.reason == "roundLimit" and wanted_tools:
        return (WarningEvent(message=ROUND_LIMIT_MESSAGE.format(context.turn.max_rounds), code=forced.reason),)
    return forced.warning_events if forced else ()


def _end_after_refusal(context: TurnContext, outcome: ModelRequestOutcome) -> None:
    """End the turn because a response could not be stored, although the log says that the round is still ours.

    The request is not sent again: it would be paid for and shown again, and be refused again (decision 0145).
    """
    context.log.read_new_entries()
    observability.log_warning("round.refused", turn=context.turn.id, round=context.log.state.round)
    final_round = FinalRound(outcome.unwritten_events, (), outcome.request_usages, accounts_for_open_request=True)
    end_turn(context.resources, context.turn, context.log, UNSTORABLE_ROUND_ERROR, final_round)


def _build_refusal_error(reason: str | None) -> ErrorEvent:
    message = f"{MODEL_REFUSED_MESSAGE}: {reason.rstrip('.')}." if reason else f"{MODEL_REFUSED_MESSAGE}."
    return ErrorEvent(message=message, code="refused", retryable=False)


def _emit_metrics(outcome: ModelRequestOutcome, response: ModelResponse) -> None:
    tokens = response.tokens
    values = {"Rounds": 1.0, "PromptTokens": tokens.context_tokens, "CompletionTokens": tokens.completion}
    if outcome.seconds_to_first_text is not None:
        values["TimeToFirstText"] = outcome.seconds_to_first_text * 1000
    observability.emit_metrics(values)


def _commit_calls(
    context: TurnContext, outcome: ModelRequestOutcome, response: ModelResponse, blocks: list[ToolCallBlock]
) -> None:
    """Commit the calls, together with all that needs no waiting.

    These are the results of instant tools (decision 0008), the browser's first request, and the start of the next
    round when every call is answered.
    """
    state = context.log.state
    invocation = context.invocation
    judge = CallJudge(context, add_usage(state, outcome.request_usages).cost_usd)
    calls = build_round_calls(context, judge, blocks, is_truncated=response.stop is FinishReason.MAX_TOKENS)
    pause = build_pause(context.turn, state.round, calls, planned_on_revision=state.revision)
    pause = pause.with_token(invocation.token, invocation.epoch)
    requests = build_approval_requests(context, pause)
    outputs = run_instant_calls(context, pause)
    transition = apply_outputs(pause, outputs, now=context.resources.clock.time(), nonce=context.new_nonce())
    stops_turn = is_last_step(context, blocks)
    children = _start_children(context, transition)
    transition = children.transition if children else transition
    call_events = tuple(
        ToolCallEvent(tool_call_id=call.tool_call_id, tool_name=context.to_wire_name(call.tool_name), input=call.input)
        for call in blocks
    )
    context.commit(
        replace(
            _build_commit(context, outcome, response),
            first_events=(
                *outcome.unwritten_events,
                *call_events,
                *requests.events,
                *_build_notices(context, outcome, response),
            ),
            build_extra_writes=lambda _entry: (
                *requests.puts,
                *judge.confirmations.puts,
                *(children.writes if children else ()),
            ),
            update_state=children.update_state if children else keep_state,
            transition=transition,
            last_events=() if stops_turn else build_next_round_started(context, transition.pause),
            stops_turn=stops_turn,
        )
    )
    if children:
        children.start_workflows(context)


def _start_children(context: TurnContext, transition: Transition) -> "StartedChildren | None":
    if not any(call.runner == "agent" for call in transition.pause.calls):
        return None
    from fermata.turns.sub_agents.start_children import start_children  # most turns ask no other agent

    return start_children(context, transition)


def _build_commit(context: TurnContext, outcome: ModelRequestOutcome, response: ModelResponse) -> RoundCommit:
    turn = context.turn
    return RoundCommit(
        tenant=turn.tenant,
        conversation=turn.conversation,
        turn=turn.id,
        round=context.log.state.round,
        first_events=(*outcome.unwritten_events, *_build_notices(context, outcome, response)),
        response_blocks=response.blocks,
        request_usages=outcome.request_usages,
    )


def _end_turn(
    context: TurnContext,
    outcome: ModelRequestOutcome,
    response: ModelResponse,
    terminal: TerminalEvent,
    warnings: tuple[WarningEvent, ...] = (),
) -> None:
    """End the turn with the response, without the calls that will not be run any more."""
    content: tuple[Block, ...] = tuple(block for block in response.blocks if not isinstance(block, ToolCallBlock))
    events = (*outcome.unwritten_events, *_build_notices(context, outcome, response), *warnings)
    final_round = FinalRound(events, content, outcome.request_usages, accounts_for_open_request=True)
    end_turn(context.resources, context.turn, context.log, terminal, apply_finish_hooks(context, terminal, final_round))


def _retry_or_end(context: TurnContext, outcome: ModelRequestOutcome, error: ProviderError) -> None:
    state = context.log.state
    observability.log_warning(
        "provider.failed", turn=context.turn.id, round=state.round, code=error.code, status=error.status
    )
    # A request that failed before any text was repeated in place already (drivers/retry_policy.py).
    was_streamed = bool(state.streamed_chars or outcome.unwritten_events)
    may_restart = error.retryable and was_streamed and may_retry_round(context, state)
    may_reduce = context.retry_policy.may_reduce_request(state.request_attempts, was_text_shown=was_streamed)
    if may_restart or (may_reduce and _reduce_request(context, error)):
        take_round(context, state, lambda _before: outcome.request_usages)
    else:
        events, terminal = _build_end_after_error(context, outcome, error)
        unwritten = (*outcome.unwritten_events, *events)
        final_round = FinalRound(unwritten, (), outcome.request_usages, accounts_for_open_request=True)
        end_turn(
            context.resources, context.turn, context.log, terminal, apply_finish_hooks(context, terminal, final_round)
        )


def _build_end_after_error(
    context: TurnContext, outcome: ModelRequestOutcome, error: ProviderError
) -> tuple[tuple[WarningEvent, ...], TerminalEvent]:
    """Return how a turn ends after its last error: done, if a model that has worked says nothing (decision 0196)."""
    is_silent = error.code == Failure.NO_ANSWER.code
    warnings = _warn_of_forced_answer(context, outcome, wanted_tools=is_silent)
    if is_silent and context.log.state.round > 1:
        return warnings or (WarningEvent(message=NO_WORDS_MESSAGE),), DoneEvent()
    is_overflow = error.code == Failure.REQUEST_TOO_LARGE.code
    message = OVERFLOW_MESSAGE.format(error.message) if is_overflow else error.message
    return warnings, ErrorEvent(message=message, code=error.code, retryable=error.retryable)


def _reduce_request(context: TurnContext, error: ProviderError) -> bool:
    """Send less of what the provider has complained about. Returns False when nothing can be left out."""
    if error.code == Failure.REQUEST_TOO_LARGE.code:
        return context.reduce_history(error.window_tokens)
    is_about_images = error.code == Failure.UNREADABLE_IMAGE.code
    return is_about_images and context.reduce_images(says_no_images=error.says_no_images)


def _build_notices(context: TurnContext, outcome: ModelRequestOutcome, response: ModelResponse) -> tuple[Event, ...]:
    """Return how full the context window is, if known, then the warnings: of settings, the driver, a cut-off answer."""
    has_calls = any(block.kind == "toolCall" for block in response.blocks)
    is_cut_off = response.stop is FinishReason.MAX_TOKENS and not has_calls
    warnings: list[Event] = []
    if response.warning and not (response.is_prompt_cut and context.log.state.is_prompt_cut_told):
        warnings.append(WarningEvent(message=response.warning, code="promptCut" if response.is_prompt_cut else None))
    if is_cut_off:
        warnings.append(WarningEvent(message=RESPONSE_CUT_OFF_MESSAGE))
    context_events = (_build_context_event(response.tokens),) if response.tokens.context_tokens else ()
    return (*context_events, *outcome.warnings, *warnings)


def _build_context_event(tokens: TokenUsage) -> ContextEvent:
    return ContextEvent(
        prompt_tokens=tokens.prompt,
        context_tokens=tokens.context_tokens,
        cache_read_tokens=tokens.cache_read,
        cache_creation_tokens=tokens.cache_creation,
    )
