"""Advance a turn: load its state and run its next pending step. Called by the round and the hold function."""

import contextlib
import math
from dataclasses import replace

from fermata.aws import observability
from fermata.aws.resources import Resources
from fermata.aws.transient_errors import AWS_ERRORS
from fermata.domain.events import CancelledEvent, ErrorEvent, Event
from fermata.drivers.transport.connection_interface import ProviderConnection
from fermata.turns.await_remote_results import await_remote_results, build_expired_output
from fermata.turns.call_transitions import Transition, apply_outputs, expire_request
from fermata.turns.end.end_turn import end_turn
from fermata.turns.end.stop_turn import choose_last_state
from fermata.turns.mcp_pin import end_mcp_sessions
from fermata.turns.pause import Pause, load_pause, store_pause_version
from fermata.turns.round.begin_round import begin_round, build_next_round_started, take_round
from fermata.turns.round.invocation import Invocation
from fermata.turns.round.open_turn import open_turn_context
from fermata.turns.round.run_round import UNSTORABLE_ROUND_ERROR, run_round
from fermata.turns.round.tool_calls import CallOutputs, compare_approved_calls, run_server_calls
from fermata.turns.round.turn_context import TurnContext
from fermata.turns.round_call import RoundCall
from fermata.turns.round_commit import PauseChanged, RoundCommit
from fermata.turns.turn_log import LostRace, StaleState, Superseded, TurnEnded

UNANSWERED_MESSAGE = "The editor did not answer in time."


def run_turn_steps(resources: Resources, invocation: Invocation, connection: ProviderConnection | None = None) -> None:
    """Work on the turn until its task token is answered, or is left for another function to answer.

    A lost race is a normal end: it is not raised.

    Args:
        connection: For model requests; None in the hold function, which makes none.
    """
    working: Invocation | None = invocation
    while working is not None:
        working = _run_turn(resources, working, connection)


def _run_turn(resources: Resources, invocation: Invocation, connection: ProviderConnection | None) -> Invocation | None:
    """Work on one turn. Returns how to go on with the turn that has asked it, if it was a sub-agent's and is over."""
    context: TurnContext | None = None
    try:
        context = open_turn_context(resources, invocation)
        if context is not None:
            _run_steps(context, connection)
            return None
        resources.workflow.resume_execution(invocation.token, "finish")
    except TurnEnded:
        is_round = context is not None and connection is not None
        if context is not None and is_round:
            end_mcp_sessions(resources, context.turn)
        last = "finish" if context is None or is_round else choose_last_state(context.turn)
        resources.workflow.resume_execution(invocation.token, last)
    except Superseded:
        observability.log_event("round.superseded", turn=invocation.turn, owner=invocation.owner)
        return None
    if context is None or context.turn.parent is None or connection is None:
        return None
    from fermata.turns.sub_agents.continue_parent import continue_parent  # most turns ask no other agent

    return continue_parent(context, context.turn.parent)


def _run_steps(context: TurnContext, connection: ProviderConnection | None) -> None:
    """Run steps until nothing is left to do.

    After an error, the log is read once more: what fails in an invocation that was superseded must not be raised,
    because the workflow would void the token that its successor works with (decision 0145).
    """
    try:
        while _run_step(context, connection):
            pass
    except LostRace:
        _account_for_lost_calls(context)
        raise
    except Exception as error:
        with contextlib.suppress(*AWS_ERRORS):
            context.log.read_new_entries()
        state = context.log.state
        if state.epoch >= context.invocation.epoch and state.owner != context.invocation.owner:
            raise Superseded from error
        raise


def _run_step(context: TurnContext, connection: ProviderConnection | None) -> bool:
    """Do one thing. Returns False when this invocation has nothing more to do."""
    context.heartbeat.send_if_due()
    state = context.log.state
    if state.phase == "ended":
        raise TurnEnded
    if state.epoch > context.invocation.epoch:
        raise Superseded
    try:
        if state.phase == "calls":
            return _advance_calls(context, _load_current_pause(context))
        if state.phase == "ready" and state.is_answered:
            return _end_answered_turn(context)
        if state.phase == "ready" and state.is_stopping:
            return _end_stopped_turn(context)
        if context.turn.undone_turn and not context.invocation.is_hold:
            return _run_undo_round(context)
        return _run_round(context, connection)
    except PauseChanged:
        _reload_after_refusal(context)
        return True
    except StaleState:
        context.reload()
        return True


def _reload_after_refusal(context: TurnContext) -> None:
    """Read the turn again. If nothing has changed, end it: the step would be refused for ever (decision 0145)."""
    seen_state, refused_pause = context.log.state, context.pause
    context.reload()
    if refused_pause is None or context.log.state != seen_state:
        return
    context.pause = load_pause(context.resources, context.turn, seen_state.round)
    if context.pause is None or context.pause.version == refused_pause.version:
        observability.log_warning("round.refused", turn=context.turn.id, round=seen_state.round)
        end_turn(context.resources, context.turn, context.log, UNSTORABLE_ROUND_ERROR)


def _end_answered_turn(context: TurnContext) -> bool:
    from fermata.turns.end.end_plan_turn import end_plan_turn  # imported here because few turns end so

    end_plan_turn(context.resources, context.turn, context.log)
    return True


def _end_stopped_turn(context: TurnContext) -> bool:
    from fermata.turns.round.stop_rules import end_stopped_turn  # imported here because few turns end so

    end_stopped_turn(context)
    return True


def _run_undo_round(context: TurnContext) -> bool:
    from fermata.turns.undo.undo_round import run_undo_round  # imported here because few turns are undos

    return run_undo_round(context)


def _run_round(context: TurnContext, connection: ProviderConnection | None) -> bool:
    has_time = context.has_time_for_model_request or context.is_before_first_step
    if connection is None or context.invocation.is_hold or not has_time:
        return _resume_in_new_invocation(context)
    context.is_before_first_step = False
    if context.turn.parent and _stop_without_parent(context):
        return True
    if context.log.state.phase == "asking" and context.owns_round:
        context.log.owner = context.invocation.owner  # an early start may be in the log though nobody was told
    else:
        begin_round(context)
    while context.log.state.phase == "asking":
        context.heartbeat.send_if_due()
        run_round(context, connection)
    return True


def _stop_without_parent(context: TurnContext) -> bool:
    """Cancel the turn of a sub-agent that nobody waits for. Returns whether it was cancelled."""
    from fermata.turns.sub_agents.stop_children import has_lost_parent  # most turns are those of users

    if not has_lost_parent(context.resources, context.turn):
        return False
    end_turn(context.resources, context.turn, context.log, CancelledEvent())
    return True


def _resume_in_new_invocation(context: TurnContext) -> bool:
    context.resources.workflow.resume_execution(context.invocation.token, "round", hint=context.invocation_hint)
    return False


def _load_current_pause(context: TurnContext) -> Pause:
    round_ = context.log.state.round
    if context.pause is None or context.pause.round != round_:
        context.pause = load_pause(context.resources, context.turn, round_)
    if context.pause is None:
        raise RuntimeError(f"Turn {context.turn.id} has open calls in round {round_} and no pause.")
    return context.pause


def _advance_calls(context: TurnContext, pause: Pause) -> bool:
    """Run server calls, request a browser call, wait for it, or give it up."""
    call = pause.next_call
    if call is None:
        raise StaleState
    if pause.epoch > context.invocation.epoch:
        raise Superseded
    if call.runner == "agent" and call.state == "waiting" and not context.invocation.is_hold:
        return _commit_children(context, pause)
    if call.waits_until:
        return _wait_or_expire(context, pause, call)
    if context.invocation.is_hold:
        return _resume_in_new_invocation(context)
    if call.runner == "server":
        if context.has_time_for(call.wait_seconds) or context.is_before_first_step:
            return _run_server_calls(context, pause)
        return _resume_in_new_invocation(context)
    context.commit(RoundCommit.for_pause(pause, _apply_outputs(context, pause, {})))
    return True


def _commit_children(context: TurnContext, pause: Pause) -> bool:
    from fermata.turns.sub_agents.start_children import commit_children  # most turns ask no other agent

    if not context.owns_round:
        take_round(context, context.log.state)
    return commit_children(context, pause)


def _apply_outputs(context: TurnContext, pause: Pause, outputs: CallOutputs) -> Transition:
    """Apply outputs. An invocation that requests a browser call waits for the answer with its own token."""
    now = context.resources.clock.time()
    final_outputs = {key: output for key, output in outputs.items() if not output[0].is_awaited}
    approved, changed = compare_approved_calls(context, pause)
    transition = apply_outputs(
        pause, {**changed, **final_outputs}, now=now, nonce=context.new_nonce(), compared_calls=approved
    )
    transition = await_remote_results(transition, outputs, now)
    if not transition.is_waiting_for_browser:
        return transition
    return transition.with_token(context.invocation.token, context.invocation.epoch)


def _run_server_calls(context: TurnContext, pause: Pause) -> bool:
    if not context.owns_round:
        take_round(context, context.log.state)
    context.is_before_first_step = False
    context.result_events.clear()
    try:
        outputs = run_server_calls(context, pause)
    except LostRace:
        raise
    except Exception:
        _account_for_lost_calls(context)
        raise
    pause = _load_current_pause(context)
    transition = _apply_outputs(context, pause, outputs)
    events = tuple(context.result_events)
    is_over = context.log.state.is_stopping or context.log.state.after_events(events).is_answered
    next_round = () if is_over else build_next_round_started(context, transition.pause)
    last_events = (*_list_display_parts(context, transition), *next_round)
    commit = RoundCommit.for_pause(pause, transition, first_events=events, last_events=last_events)
    _commit_with_tool_usages(context, commit)
    return True


def _account_for_lost_calls(context: TurnContext) -> None:
    """Write the ledger rows of calls that were paid for and whose results are not stored (decision 0435)."""
    if context.remote_tools:
        context.remote_tools.store_uncommitted_usages(context.invocation.owner)


def _list_display_parts(context: TurnContext, transition: Transition) -> tuple[Event, ...]:
    """Return how the results of an agent's tools are displayed. Nobody follows the turn of a sub-agent."""
    if not context.agent.connection or context.turn.parent:
        return ()
    from fermata.turns.round.display_parts import build_display_parts  # most turns have a built-in agent

    return build_display_parts(context, transition)


def _commit_with_tool_usages(context: TurnContext, commit: RoundCommit) -> None:
    """Store the outputs of server calls, with what the requests of remote tools have cost."""
    tools = context.remote_tools
    usages = tools.build_usages() if tools else ()
    context.commit(replace(commit, request_usages=usages) if usages else commit)
    if tools:
        tools.clear_usages()


def _wait_or_expire(context: TurnContext, pause: Pause, call: RoundCall) -> bool:
    """Wait for the open request: in Hold, or with a heartbeat timeout that covers its deadline (decision 0005)."""
    invocation = context.invocation
    workflow = context.resources.workflow
    seconds_left = call.waits_until - context.resources.clock.time()
    if seconds_left <= 0:
        return _resume_in_new_invocation(context) if invocation.is_hold else _expire(context, pause)
    if invocation.is_hold:
        return _store_hold_token(context, pause)
    is_short = call.has_running_child or seconds_left <= context.resources.settings.heartbeat_seconds
    if pause.callback_token == invocation.token and is_short:
        workflow.send_heartbeat(invocation.token)
        return False
    if call.has_running_child:
        from fermata.turns.sub_agents.look_after_children import look_after_children  # most turns ask no other agent

        if look_after_children(context, pause):
            return True
    workflow.resume_execution(invocation.token, "hold", seconds=math.ceil(seconds_left), hint=context.invocation_hint)
    return False


def _store_hold_token(context: TurnContext, pause: Pause) -> bool:
    """Store the token that the answer will resume the execution with.

    The log is read once more afterwards: an end that came before the token was stored has resumed nothing.
    """
    held = pause.with_token(context.invocation.token, context.invocation.epoch, held=True)
    store_pause_version(context.resources, held.model_copy(update={"version": pause.version + 1}))
    context.log.read_new_entries()
    return False


def _expire(context: TurnContext, pause: Pause) -> bool:
    """Give up the open request: the turn ends, or where the setting says so the model reads an error.

    Of a remote tool's call the model always reads it.
    """
    call = pause.requested_call
    if call is not None and call.has_running_child:
        from fermata.turns.sub_agents.look_after_children import expire_children  # most turns ask no other agent

        return expire_children(context, pause)
    if call is None:
        from fermata.turns.approvals.expire_approvals import expire_approvals  # people decide in time, as a rule

        return expire_approvals(context, pause)
    if call.runner == "server":
        outputs: CallOutputs = {call.effect_key: (build_expired_output(), "")}
        context.commit(RoundCommit.for_pause(pause, _apply_outputs(context, pause, outputs)))
        return True
    if context.resources.settings.unanswered_calls == "tell_model" and not context.turn.undone_turn:
        transition = expire_request(pause, f"{UNANSWERED_MESSAGE} The call was given up.")
        context.commit(RoundCommit.for_pause(pause, transition))
        return True
    seen_state = context.log.state
    name = pause.next_call.tool_name if pause.next_call else "a tool"
    message = f"{UNANSWERED_MESSAGE} It was asked to run {name}."
    terminal = ErrorEvent(message=message, code="no_answer", retryable=True)
    end_turn(context.resources, context.turn, context.log, terminal, is_expected=lambda now: now == seen_state)
    return True
