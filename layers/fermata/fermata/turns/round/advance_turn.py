"""The one verb: every wake-up reads where the turn stands and does the next undone thing (design §3)."""

import math

from fermata.aws import observability
from fermata.aws.resources import Resources
from fermata.domain.events import ErrorEvent
from fermata.drivers.transport.connection import ProviderConnection
from fermata.turns.commits import RoundCommit
from fermata.turns.end.end_turn import end_turn
from fermata.turns.pause import Pause, RoundCall, build_pause_key, load_pause, pause_from_item, replace_pause
from fermata.turns.round.run_round import begin_round, build_next_round_started, run_round, take_round
from fermata.turns.round.tool_calls import CallOutputs, run_server_calls
from fermata.turns.round.turn_context import Invocation, TurnContext
from fermata.turns.transitions import Transition, apply_outputs, expire_request
from fermata.turns.turn import build_turn_pk, turn_from_item
from fermata.turns.turn_log import (
    StaleState,
    Superseded,
    TurnEnded,
    TurnLog,
    build_entry_key,
    log_entry_from_item,
    read_last_entry,
)

UNANSWERED_MESSAGE = "The editor did not answer in time."


def advance_turn(resources: Resources, invocation: Invocation, connection: ProviderConnection | None = None) -> None:
    """Returns when the token has been answered or somebody else is to answer it; never raises for a lost race."""
    try:
        work = open_turn_context(resources, invocation)
        if work is None:
            resources.workflow.resume_execution(invocation.token, "finish")
            return
        while _step(work, connection):
            pass
    except TurnEnded:
        resources.workflow.resume_execution(invocation.token, "finish")
    except Superseded:
        observability.log_event("round.superseded", turn=invocation.turn, owner=invocation.owner)


def open_turn_context(resources: Resources, invocation: Invocation) -> TurnContext | None:
    """The turn, its log read to its end and the hinted pause, in one read when the hint is fresh."""
    hint = {"round": 0, "entry": 1, "next": 2} | (invocation.hint or {})
    pk = build_turn_pk(invocation.tenant, invocation.turn)
    names = ("turn", build_pause_key(hint["round"]), build_entry_key(hint["entry"]), build_entry_key(hint["next"]))
    found = resources.tables.batch_get_items(resources.settings.bridges_table, [(pk, name) for name in names])
    turn_row, pause_row, entry_row, next_row = (found.get((pk, name)) for name in names)
    turn = turn_from_item(turn_row, resources.clock.time())
    if turn is None or turn.n != invocation.execution_number:
        return None
    is_fresh = entry_row is not None and next_row is None
    tail = log_entry_from_item(resources, entry_row) if entry_row and is_fresh else read_last_entry(resources, pk)
    if tail is None:
        raise RuntimeError(f"Turn {turn.id} has a row and no log.")
    work = TurnContext(resources, turn, TurnLog.from_last_entry(resources, turn.partition, tail), invocation)
    if pause_row and is_fresh and tail.state.round == hint["round"]:
        work.pause = pause_from_item(resources, pause_row)  # read before the tail, it might be older than that
    return work


def _step(work: TurnContext, line: ProviderConnection | None) -> bool:
    """Do one thing; False when this invocation has nothing more to do."""
    work.heartbeat.send_if_due()
    standing = work.log.state
    if standing.phase == "ended":
        raise TurnEnded
    if standing.epoch > work.invocation.epoch:
        raise Superseded
    try:
        if standing.phase == "calls":
            return _attend(work, _current_pause(work))
        if work.turn.undoes and not work.invocation.is_hold:
            return _take_back(work)
        return _run_round(work, line)
    except StaleState:
        work.reload()
        return True


def _take_back(work: TurnContext) -> bool:
    from fermata.turns.undo.undo_round import run_undo_round  # few turns are undos

    return run_undo_round(work)


def _run_round(work: TurnContext, line: ProviderConnection | None) -> bool:
    if line is None or work.invocation.is_hold or not (work.has_time_for_model_request or work.is_unused):
        return _hand_on(work)
    work.is_unused = False
    if not (work.log.state.phase == "asking" and work.owns_round):
        begin_round(work)
    while work.log.state.phase == "asking":
        work.heartbeat.send_if_due()
        run_round(work, line)
    return True


def _hand_on(work: TurnContext) -> bool:
    """Let the workflow go on in an invocation of its own."""
    work.resources.workflow.resume_execution(work.invocation.token, "round", hint=work.hint)
    return False


def _current_pause(work: TurnContext) -> Pause:
    if work.pause is None or work.pause.round != work.log.state.round:
        work.pause = load_pause(work.resources, work.turn, work.log.state.round)
    if work.pause is None:
        raise RuntimeError(f"Turn {work.turn.id} has open calls in round {work.log.state.round} and no pause.")
    return work.pause


def _attend(work: TurnContext, pause: Pause) -> bool:
    """See to the round's calls: run ours, ask the browser, wait for it, or give up waiting."""
    call = pause.next_call
    if call is None:
        raise StaleState
    if pause.epoch > work.invocation.epoch:
        raise Superseded
    if call.state == "requested":
        return _wait_or_expire(work, pause, call)
    if work.invocation.is_hold:
        return _hand_on(work)
    if call.runner == "server" and not (work.has_time_for(call.wait_seconds) or work.is_unused):
        return _hand_on(work)
    if call.runner == "server":
        return _run_ours(work, pause)
    work.commit(RoundCommit.for_pause(pause, progress=_settled(work, pause, {})))
    return True


def _settled(work: TurnContext, pause: Pause, answers: CallOutputs) -> Transition:
    """Whoever asks the browser waits for it with its own token."""
    progress = apply_outputs(pause, answers, now=work.resources.clock.time(), nonce=work.new_nonce())
    return (
        progress.with_token(work.invocation.token, work.invocation.epoch)
        if progress.is_waiting_for_browser
        else progress
    )


def _run_ours(work: TurnContext, pause: Pause) -> bool:
    if not work.owns_round:
        take_round(work, work.log.state)
    work.is_unused = False
    answers = run_server_calls(work, pause)
    pause = _current_pause(work)
    progress = _settled(work, pause, answers)
    work.commit(RoundCommit.for_pause(pause, progress=progress, then=build_next_round_started(work, progress.pause)))
    return True


def _wait_or_expire(work: TurnContext, pause: Pause, call: RoundCall) -> bool:
    left = call.deadline - work.resources.clock.time()
    if left <= 0 and not work.invocation.is_hold:
        return _expire(work, pause)
    if left <= 0:
        return _hand_on(work)
    if work.invocation.is_hold:
        return _store_token(work, pause)
    if pause.token == work.invocation.token and left <= work.resources.settings.heartbeat_seconds:
        work.resources.workflow.send_heartbeat(work.invocation.token)
        return False
    work.resources.workflow.resume_execution(work.invocation.token, "hold", seconds=math.ceil(left), hint=work.hint)
    return False


def _store_token(work: TurnContext, pause: Pause) -> bool:
    """Hold: whoever answers now wakes us. An end that came in between is seen by reading the log once more."""
    kept = pause.with_token(work.invocation.token, work.invocation.epoch, held=True)
    replace_pause(work.resources, kept.model_copy(update={"version": pause.version + 1}))
    work.log.read_new_entries()
    return False


def _expire(work: TurnContext, pause: Pause) -> bool:
    error = f"{UNANSWERED_MESSAGE} The call was given up."
    progress = expire_request(pause, error)
    if work.resources.settings.unanswered_calls == "tell_model" and not work.turn.undoes:
        work.commit(RoundCommit.for_pause(pause, progress=progress))
        return True
    seen = work.log.state
    name = pause.next_call.tool_name if pause.next_call else "a tool"
    terminal = ErrorEvent(message=f"{UNANSWERED_MESSAGE} It was asked to run {name}.", code="no_answer", retryable=True)
    end_turn(work.resources, work.turn, work.log, terminal, is_expected=lambda now: now == seen)
    return True
