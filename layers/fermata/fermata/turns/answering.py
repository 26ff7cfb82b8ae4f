"""A browser answers a call: idempotent, ordered, and refused when it comes for anything but the open request."""

from typing import Any

from fermata.aws import blobs
from fermata.aws.clock import new_id
from fermata.aws.desk import Desk
from fermata.tools.editing import Told, conflict, find, read_answer
from fermata.tools.pipeline import shape
from fermata.turns import commits
from fermata.turns import pause as pauses
from fermata.turns.commits import Commit, PauseChanged
from fermata.turns.intake import with_fit_images
from fermata.turns.log import Ended, Log
from fermata.turns.pause import Call, Pause
from fermata.turns.progress import settle
from fermata.turns.recording import give_up_the_rest, writes
from fermata.turns.standing import Standing
from fermata.turns.turn import partition
from fermata.words.caller import Caller, Capability
from fermata.words.errors import Conflict, Forbidden, NotFound, Unavailable
from fermata.words.tools import ToolOutput

TRIES = 20
GONE = "This tool request is no longer waited for: its turn has ended, its time is over, or it was never made."


def answer(
    desk: Desk,
    caller: Caller,
    *,
    bridge_id: str,
    request_id: str,
    result: Any,
    snapshot: Any = None,
    revision: str = "",
) -> None:
    """Returns when the answer is committed and the turn has been woken; the same answer again changes nothing.

    `revision`: what the document is at now, unless the result says it.
    NotFound: nobody waits for it. Conflict: it was answered differently. Unavailable: send it again.
    """
    digest, told = pauses.answer_hash(result), read_answer(result)
    now = told.revision or revision
    kept, is_over = "", False
    for _ in range(TRIES):
        pause = _pause(desk, caller, bridge_id, request_id)
        call = _call(pause, caller, request_id)
        if call.state == "answered":
            _repeat(desk, pause, call, digest)
            return
        if is_over or call.state != "requested":
            raise NotFound(GONE)
        kept = kept or _keep_snapshot(desk, pause, snapshot)
        try:
            _commit(desk, pause, call, told, digest, kept, now)
        except PauseChanged:
            continue
        except Ended:
            is_over = True  # perhaps because the same answer came at the same time and let the turn go on to its end
            continue
        return
    raise Unavailable("This turn is very busy. Send the same result again.", retry_after=1)


def _pause(desk: Desk, caller: Caller, bridge_id: str, request_id: str) -> Pause:
    round_ = pauses.round_of(request_id)
    if round_ is None:
        raise NotFound(GONE)
    pk = partition(caller.tenant, bridge_id)
    row = desk.tables.get(desk.settings.bridges_table, pk, pauses.sk(round_))
    if row is None or row["ttl"] <= desk.clock.time():
        raise NotFound(GONE)
    pause = pauses.read(desk, row)
    if pause.user != caller.user and not caller.may(Capability.TURNS):
        raise NotFound(GONE)
    return pause


def _call(pause: Pause, caller: Caller, request_id: str) -> Call:
    call = pause.call(request_id)
    if call is None:
        raise NotFound(GONE)
    if not caller.may(Capability.WRITE if call.mutates else Capability.CHAT):
        raise Forbidden("Forbidden")
    return call


def _repeat(desk: Desk, pause: Pause, call: Call, digest: str) -> None:
    """An answer that is already there: the same one is fine, and its wake-up is sent again."""
    if call.answer_hash != digest:
        raise Conflict("This tool request was already answered with a different result.", retry_after=1)
    _wake(desk, pause)


def _output(pause: Pause, call: Call, told: Told) -> ToolOutput:
    """As much of it as the model gets to see; what an undo meets is for people, in the editor's own words."""
    output = with_fit_images(told.output)
    if output.conflict and not pause.takes_back:
        output = conflict(told, call.revision)
    tool = find(pause.scope, call.tool_name)
    return shape(tool, output).model_copy(update={"conflict": output.conflict}) if tool else output


def _keep_snapshot(desk: Desk, pause: Pause, snapshot: Any) -> str:
    """An editor that only read posts what it posted before; that lies there as long as the turn does."""
    if snapshot is None:
        return ""
    newest = Standing.from_item(pause.standing).snapshot
    return desk.blobs.put_packed(blobs.turn_folder(pause.tenant, pause.turn), snapshot, known=newest)


def _commit(desk: Desk, pause: Pause, call: Call, told: Told, digest: str, snapshot: str, revision: str) -> None:
    output = _output(pause, call, told)
    edited = pause.edited(call, output, revision)
    if pause.takes_back and not output.ok:
        edited = give_up_the_rest(edited, call)
    progress = settle(edited, {call.effect_key: (output, digest)}, now=desk.clock.time(), nonce=new_id(12))
    log = Log(desk, pause.place, pause.entry, pause.next, Standing.from_item(pause.standing))
    kept = writes(desk, pause, call, told, output, revision)
    parts = {"progress": progress, "snapshot": snapshot, "revision": revision, "kept": kept}
    done = commits.write(desk, log, Commit.of(pause, **parts))
    if done.pause:
        _wake(desk, done.pause)


def _wake(desk: Desk, pause: Pause) -> None:
    """The next request keeps the alarm clock from ringing; nothing left to wait for sends the turn on.

    Hold has no alarm clock: from there the round is woken, which gives the next request a clock of its own.
    """
    if not pause.token:
        return
    if pause.open_request is not None and not pause.held:
        desk.workflow.beat(pause.token)
    else:
        desk.workflow.go_on(pause.token, "round", hint=pause.hint)
