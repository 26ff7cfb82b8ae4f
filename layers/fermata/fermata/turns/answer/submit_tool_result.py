"""A browser answers a call: idempotent, ordered, and refused when it comes for anything but the open request."""

from typing import Any

from fermata.aws import blob_store
from fermata.aws.clock import new_id
from fermata.aws.resources import Resources
from fermata.domain.caller import Caller, Capability
from fermata.domain.errors import Conflict, Forbidden, NotFound, ServiceUnavailable
from fermata.domain.tools import ToolOutput
from fermata.tools.calls.edit_results import EditResult, build_conflict_output, find_edit_tool, parse_edit_result
from fermata.tools.calls.pipeline import apply_result_policy
from fermata.turns import commits
from fermata.turns.answer.journal_writes import journal_writes_builder, skip_remaining_calls
from fermata.turns.commits import PauseChanged, RoundCommit
from fermata.turns.pause import Pause, RoundCall, build_pause_key, hash_result, pause_from_item, round_from_request_id
from fermata.turns.start.prompt_images import normalize_result_images
from fermata.turns.state import TurnState
from fermata.turns.transitions import apply_outputs
from fermata.turns.turn import build_turn_pk
from fermata.turns.turn_log import TurnEnded, TurnLog

MAX_COMMIT_ATTEMPTS = 20
REQUEST_GONE_MESSAGE = (
    "This tool request is no longer waited for: its turn has ended, its time is over, or it was never made."
)


def submit_tool_result(
    resources: Resources,
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
    digest, told = hash_result(result), parse_edit_result(result)
    now = told.revision or revision
    kept, is_over = "", False
    for _ in range(MAX_COMMIT_ATTEMPTS):
        pause = _pause(resources, caller, bridge_id, request_id)
        call = _call(pause, caller, request_id)
        if call.state == "answered":
            _repeat(resources, pause, call, digest)
            return
        if is_over or call.state != "requested":
            raise NotFound(REQUEST_GONE_MESSAGE)
        kept = kept or _keep_snapshot(resources, pause, snapshot)
        try:
            _commit(resources, pause, call, told, digest, kept, now)
        except PauseChanged:
            continue
        except TurnEnded:
            is_over = True  # perhaps because the same answer came at the same time and let the turn go on to its end
            continue
        return
    raise ServiceUnavailable("This turn is very busy. Send the same result again.", retry_after=1)


def _pause(resources: Resources, caller: Caller, bridge_id: str, request_id: str) -> Pause:
    round_ = round_from_request_id(request_id)
    if round_ is None:
        raise NotFound(REQUEST_GONE_MESSAGE)
    pk = build_turn_pk(caller.tenant, bridge_id)
    row = resources.tables.get_item(resources.settings.bridges_table, pk, build_pause_key(round_))
    if row is None or row["ttl"] <= resources.clock.time():
        raise NotFound(REQUEST_GONE_MESSAGE)
    pause = pause_from_item(resources, row)
    if pause.user != caller.user and not caller.has_capability(Capability.TURNS):
        raise NotFound(REQUEST_GONE_MESSAGE)
    return pause


def _call(pause: Pause, caller: Caller, request_id: str) -> RoundCall:
    call = pause.find_call(request_id)
    if call is None:
        raise NotFound(REQUEST_GONE_MESSAGE)
    if not caller.has_capability(Capability.WRITE if call.mutates else Capability.CHAT):
        raise Forbidden("Forbidden")
    return call


def _repeat(resources: Resources, pause: Pause, call: RoundCall, digest: str) -> None:
    """An answer that is already there: the same one is fine, and its wake-up is sent again."""
    if call.answer_hash != digest:
        raise Conflict("This tool request was already answered with a different result.", retry_after=1)
    _wake(resources, pause)


def _output(pause: Pause, call: RoundCall, told: EditResult) -> ToolOutput:
    """As much of it as the model gets to see; what an undo meets is for people, in the editor's own words."""
    output = normalize_result_images(told.output)
    if output.conflict and not pause.takes_back:
        output = build_conflict_output(told, call.revision)
    tool = find_edit_tool(pause.scope, call.tool_name)
    return apply_result_policy(tool, output).model_copy(update={"conflict": output.conflict}) if tool else output


def _keep_snapshot(resources: Resources, pause: Pause, snapshot: Any) -> str:
    """An editor that only read posts what it posted before; that lies there as long as the turn does."""
    if snapshot is None:
        return ""
    newest = TurnState.from_item(pause.standing).snapshot
    return resources.blobs.put_compressed_json(
        blob_store.turn_folder(pause.tenant, pause.turn), snapshot, stored_key=newest
    )


def _commit(
    resources: Resources, pause: Pause, call: RoundCall, told: EditResult, digest: str, snapshot: str, revision: str
) -> None:
    output = _output(pause, call, told)
    edited = pause.with_edit_applied(call, output, revision)
    if pause.takes_back and not output.ok:
        edited = skip_remaining_calls(edited, call)
    progress = apply_outputs(edited, {call.effect_key: (output, digest)}, now=resources.clock.time(), nonce=new_id(12))
    log = TurnLog(resources, pause.partition, pause.entry, pause.next, TurnState.from_item(pause.standing))
    kept = journal_writes_builder(resources, pause, call, told, output, revision)
    parts = {"progress": progress, "snapshot": snapshot, "revision": revision, "kept": kept}
    done = commits.write_round_commit(resources, log, RoundCommit.for_pause(pause, **parts))
    if done.pause:
        _wake(resources, done.pause)


def _wake(resources: Resources, pause: Pause) -> None:
    """The next request keeps the alarm clock from ringing; nothing left to wait for sends the turn on.

    Hold has no alarm clock: from there the round is woken, which gives the next request a clock of its own.
    """
    if not pause.token:
        return
    if pause.requested_call is not None and not pause.held:
        resources.workflow.send_heartbeat(pause.token)
    else:
        resources.workflow.resume_execution(pause.token, "round", hint=pause.hint)
