"""The one verb: every wake-up reads where the turn stands and does the next undone thing (design §3)."""

import math

from fermata.aws import signals
from fermata.aws.desk import Desk
from fermata.drivers.line import Line
from fermata.turns import log as logs
from fermata.turns import pause as pauses
from fermata.turns import turn as turns
from fermata.turns.calls import Answers, run_ours
from fermata.turns.commits import Commit
from fermata.turns.ending import end
from fermata.turns.log import Ended, Log, Moved, Superseded
from fermata.turns.pause import Call, Pause
from fermata.turns.progress import Progress, expire, settle
from fermata.turns.rounds import begin, next_round, run, take
from fermata.turns.turn import partition
from fermata.turns.work import Wake, Work
from fermata.words.events import TurnError

NOBODY_ANSWERED = "The editor did not answer in time."


def advance(desk: Desk, wake: Wake, line: Line | None = None) -> None:
    """Returns when the token has been answered or somebody else is to answer it; never raises for a lost race."""
    try:
        work = open_work(desk, wake)
        if work is None:
            desk.workflow.go_on(wake.token, "finish")
            return
        while _step(work, line):
            pass
    except Ended:
        desk.workflow.go_on(wake.token, "finish")
    except Superseded:
        signals.tell("round.superseded", turn=wake.turn, owner=wake.owner)


def open_work(desk: Desk, wake: Wake) -> Work | None:
    """The turn, its log read to its end and the hinted pause, in one read when the hint is fresh."""
    hint = {"round": 0, "entry": 1, "next": 2} | (wake.hint or {})
    pk = partition(wake.tenant, wake.turn)
    names = ("turn", pauses.sk(hint["round"]), logs.key(hint["entry"]), logs.key(hint["next"]))
    found = desk.tables.batch_get(desk.settings.bridges_table, [(pk, name) for name in names])
    turn_row, pause_row, entry_row, next_row = (found.get((pk, name)) for name in names)
    turn = turns.read(turn_row, desk.clock.time())
    if turn is None or turn.n != wake.n:
        return None
    is_fresh = entry_row is not None and next_row is None
    tail = logs.entry(desk, entry_row) if entry_row and is_fresh else logs.last(desk, pk)
    if tail is None:
        raise RuntimeError(f"Turn {turn.id} has a row and no log.")
    work = Work(desk, turn, Log.behind(desk, turn.place, tail), wake)
    if pause_row and is_fresh and tail.standing.round == hint["round"]:
        work.pause = pauses.read(desk, pause_row)  # read before the tail, it might be older than that
    return work


def _step(work: Work, line: Line | None) -> bool:
    """Do one thing; False when this invocation has nothing more to do."""
    work.pulse.keep()
    standing = work.log.standing
    if standing.phase == "ended":
        raise Ended
    if standing.epoch > work.wake.epoch:
        raise Superseded
    try:
        if standing.phase == "calls":
            return _attend(work, _current_pause(work))
        if work.turn.undoes and not work.wake.holds:
            return _take_back(work)
        return _run_round(work, line)
    except Moved:
        work.look_again()
        return True


def _take_back(work: Work) -> bool:
    from fermata.turns.taking_back import take_back  # few turns are undos

    return take_back(work)


def _run_round(work: Work, line: Line | None) -> bool:
    if line is None or work.wake.holds or not (work.has_time_to_ask or work.is_fresh):
        return _hand_on(work)
    work.is_fresh = False
    if not (work.log.standing.phase == "asking" and work.owns_the_round):
        begin(work)
    while work.log.standing.phase == "asking":
        work.pulse.keep()
        run(work, line)
    return True


def _hand_on(work: Work) -> bool:
    """Let the workflow go on in an invocation of its own."""
    work.desk.workflow.go_on(work.wake.token, "round", hint=work.hint)
    return False


def _current_pause(work: Work) -> Pause:
    if work.pause is None or work.pause.round != work.log.standing.round:
        work.pause = pauses.load(work.desk, work.turn, work.log.standing.round)
    if work.pause is None:
        raise RuntimeError(f"Turn {work.turn.id} has open calls in round {work.log.standing.round} and no pause.")
    return work.pause


def _attend(work: Work, pause: Pause) -> bool:
    """See to the round's calls: run ours, ask the browser, wait for it, or give up waiting."""
    call = pause.next_call
    if call is None:
        raise Moved
    if pause.epoch > work.wake.epoch:
        raise Superseded
    if call.state == "requested":
        return _wait_or_expire(work, pause, call)
    if work.wake.holds:
        return _hand_on(work)
    if call.runner == "server" and not (work.has_time_for(call.wait_seconds) or work.is_fresh):
        return _hand_on(work)
    if call.runner == "server":
        return _run_ours(work, pause)
    work.commit(Commit.of(pause, progress=_settled(work, pause, {})))
    return True


def _settled(work: Work, pause: Pause, answers: Answers) -> Progress:
    """Whoever asks the browser waits for it with its own token."""
    progress = settle(pause, answers, now=work.desk.clock.time(), nonce=work.nonce())
    return progress.waited_for(work.wake.token, work.wake.epoch) if progress.browser_is_asked else progress


def _run_ours(work: Work, pause: Pause) -> bool:
    if not work.owns_the_round:
        take(work, work.log.standing)
    work.is_fresh = False
    answers = run_ours(work, pause)
    pause = _current_pause(work)
    progress = _settled(work, pause, answers)
    work.commit(Commit.of(pause, progress=progress, then=next_round(work, progress.pause)))
    return True


def _wait_or_expire(work: Work, pause: Pause, call: Call) -> bool:
    left = call.deadline - work.desk.clock.time()
    if left <= 0 and not work.wake.holds:
        return _expire(work, pause)
    if left <= 0:
        return _hand_on(work)
    if work.wake.holds:
        return _store_token(work, pause)
    if pause.token == work.wake.token and left <= work.desk.settings.heartbeat_seconds:
        work.desk.workflow.beat(work.wake.token)
        return False
    work.desk.workflow.go_on(work.wake.token, "hold", seconds=math.ceil(left), hint=work.hint)
    return False


def _store_token(work: Work, pause: Pause) -> bool:
    """Hold: whoever answers now wakes us. An end that came in between is seen by reading the log once more."""
    kept = pause.waited_for(work.wake.token, work.wake.epoch, held=True)
    pauses.replace(work.desk, kept.model_copy(update={"version": pause.version + 1}))
    work.log.peek()
    return False


def _expire(work: Work, pause: Pause) -> bool:
    error = f"{NOBODY_ANSWERED} The call was given up."
    progress = expire(pause, error)
    if work.desk.settings.unanswered == "tell_model" and not work.turn.undoes:
        work.commit(Commit.of(pause, progress=progress))
        return True
    seen = work.log.standing
    name = pause.next_call.tool_name if pause.next_call else "a tool"
    terminal = TurnError(message=f"{NOBODY_ANSWERED} It was asked to run {name}.", code="no_answer", retryable=True)
    end(work.desk, work.turn, work.log, terminal, expect=lambda now: now == seen)
    return True
