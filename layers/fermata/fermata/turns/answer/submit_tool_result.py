"""Accept the result of a tool call from a browser: idempotent, and only for the request that is open."""

from dataclasses import replace
from functools import cached_property, partial
from typing import Any

from fermata.agents.registry import get_editor_toolset
from fermata.aws import blob_store
from fermata.aws.clock import is_valid_id, new_id
from fermata.aws.lazy_snapshot import LazySnapshot
from fermata.aws.resources import Resources
from fermata.domain.caller import Caller, Capability
from fermata.domain.errors import Conflict, Forbidden, NotFound, ServiceUnavailable
from fermata.domain.tools import ToolOutput
from fermata.tools.calls.edit_results import EditResult, build_conflict_output, find_edit_tool, parse_edit_result
from fermata.tools.calls.pipeline import limit_output
from fermata.tools.tool import ResultPolicy
from fermata.turns.answer.journal_writes import prepare_journal_writes, skip_remaining_calls
from fermata.turns.answer.normalize_result_images import (
    fetch_uploaded_images,
    identify_uploaded_images,
    normalize_result_images,
)
from fermata.turns.answer.resume_turn import resume_turn
from fermata.turns.call_transitions import apply_outputs
from fermata.turns.pause import Pause, build_pause_key, hash_result, pause_from_item, round_from_request_id
from fermata.turns.round_call import RoundCall
from fermata.turns.round_commit import PauseChanged, RoundCommit, write_round_commit
from fermata.turns.store_snapshot_early import SnapshotStorage
from fermata.turns.turn import build_turn_pk
from fermata.turns.turn_log import TurnEnded, TurnLog

MAX_COMMIT_ATTEMPTS = 20
STORED_SNAPSHOT_SECONDS = 3600
"""How long a process remembers the newest snapshot that it has stored for a turn. The blob is kept much longer."""
REQUEST_GONE_MESSAGE = "This tool request is not open: its turn has ended, it has timed out, or it was never made."


class ToolRequestGone(NotFound):
    """The request is not open: it never was, or no longer is."""

    def __init__(self) -> None:
        super().__init__(REQUEST_GONE_MESSAGE, reason="no_open_request")


class _Answer:
    """A posted result. `revision` is the document's, from the result or else from the body around it."""

    def __init__(self, resources: Resources, caller: Caller, posted: Any, revision: str) -> None:
        self._resources = resources
        self._caller = caller
        self._posted = posted
        self.result_hash = hash_result(identify_uploaded_images(posted))
        self._revision = revision

    @cached_property
    def result(self) -> EditResult:
        """The result with its images as providers accept them. A repeated answer needs neither it nor its uploads."""
        result = parse_edit_result(fetch_uploaded_images(self._resources, self._caller, self._posted))
        return replace(result, output=normalize_result_images(result.output))

    @property
    def revision(self) -> str:
        return self.result.revision or self._revision


def submit_tool_result(
    resources: Resources,
    caller: Caller,
    *,
    bridge_id: str,
    request_id: str,
    result: Any,
    snapshot: LazySnapshot | None = None,
    revision: str = "",
) -> None:
    """Commit the result of the open request and resume the turn. The same result again changes nothing.

    Args:
        result: A ToolOutput as JSON, with the members that an editor may add (docs/revisions-and-undo.md).
        snapshot: The document's new snapshot, or None when the editor sends none. A repeated result
            needs it no more.
        revision: The document's revision now, unless `result` has one.

    Raises:
        ToolRequestGone: The request is not open, or not the caller's.
        ApiError: The snapshot or an uploaded image cannot be fetched.
        Forbidden: The caller may not answer this call.
        Conflict: The request was answered with another result.
        ServiceUnavailable: Too many writers at once, or the workflow cannot be reached. The caller should repeat.
    """
    answer = _Answer(resources, caller, result, revision)
    store_snapshot = partial(_store_snapshot, resources, caller, bridge_id, snapshot)
    with SnapshotStorage(resources, caller, store_snapshot) as storage:
        _submit_answer(resources, caller, bridge_id, request_id, answer, storage)


def _submit_answer(
    resources: Resources,
    caller: Caller,
    bridge_id: str,
    request_id: str,
    answer: _Answer,
    storage: SnapshotStorage,
) -> None:
    has_turn_ended = False
    for _ in range(MAX_COMMIT_ATTEMPTS):
        pause = _load_pause(resources, caller, bridge_id, request_id)
        call = _find_call(pause, caller, request_id)
        if call.state == "answered":
            _repeat_answer(resources, pause, call, answer)
            return
        if has_turn_ended or call.state != "requested":
            raise ToolRequestGone
        try:
            _commit_answer(resources, pause, call, answer, storage.get_key())
        except PauseChanged:
            continue
        except TurnEnded:
            # Read the pause once more: the same answer may have come twice, and the first one let the turn end.
            has_turn_ended = True
            continue
        return
    raise ServiceUnavailable("This turn is very busy. Send the same result again.", retry_after=1)


def _load_pause(resources: Resources, caller: Caller, bridge_id: str, request_id: str) -> Pause:
    round_ = round_from_request_id(request_id)
    if round_ is None:
        raise ToolRequestGone
    pk = build_turn_pk(caller.tenant, bridge_id)
    item = resources.tables.get_item(resources.settings.bridges_table, pk, build_pause_key(round_))
    if item is None or item["ttl"] <= resources.clock.time():
        raise ToolRequestGone
    pause = pause_from_item(resources, item)
    # A pause does not say its scope. A key that is for some scopes answers its own turns, which are in these.
    may_answer_others = caller.has_capability(Capability.TURNS) and caller.scopes is None
    if pause.user != caller.user and not may_answer_others:
        raise ToolRequestGone
    return pause


def _find_call(pause: Pause, caller: Caller, request_id: str) -> RoundCall:
    call = pause.find_call(request_id)
    if call is None or call.runner != "browser":
        raise ToolRequestGone
    if not caller.has_capability(Capability.WRITE if call.is_edit else Capability.CHAT):
        raise Forbidden("Forbidden")
    return call


def _repeat_answer(resources: Resources, pause: Pause, call: RoundCall, answer: _Answer) -> None:
    """Resume the turn again, because the first answer may have failed before it did."""
    if call.answer_hash != answer.result_hash:
        raise Conflict("This tool request was already answered with a different result.")
    resume_turn(resources, pause)


def _store_snapshot(resources: Resources, caller: Caller, bridge_id: str, snapshot: LazySnapshot | None) -> str:
    """Store a snapshot, unless this process has just stored the same, and return its blob key (decision 0113).

    It is stored while the pause is read, so before it is known that the request is open, unless the user's last result
    has needed none. A snapshot that no turn needs expires in a folder of the user (decisions 0178 and 0298).
    """
    if snapshot is None or not is_valid_id(bridge_id):
        return ""
    folder = f"{blob_store.snapshots_folder(caller.tenant, caller.user)}/{bridge_id}"
    stored_key = resources.cache.get_value(("snapshot", folder)) or ""
    key = resources.blobs.put_compressed_json(folder, snapshot.fetch().storable, stored_key=stored_key)
    resources.cache.put_value(("snapshot", folder), STORED_SNAPSHOT_SECONDS, key)
    return key


def _commit_answer(resources: Resources, pause: Pause, call: RoundCall, answer: _Answer, snapshot_key: str) -> None:
    output = _build_output(pause, call, answer.result)
    edited_pause = pause.with_edit_applied(call, output, answer.revision)
    if pause.undo_target and not output.ok:
        edited_pause = skip_remaining_calls(edited_pause, call)
    outputs = {call.effect_key: (output, answer.result_hash)}
    transition = apply_outputs(edited_pause, outputs, now=resources.clock.time(), nonce=new_id(12))
    # The log is not read: the pause knows the entry behind which the answer belongs (decision 0003).
    log = TurnLog(resources, pause.partition, pause.last_entry_number, pause.next_number, pause.turn_state)
    commit = RoundCommit.for_pause(
        pause,
        transition,
        snapshot_key=snapshot_key,
        revision=answer.revision,
        build_extra_writes=prepare_journal_writes(resources, pause, call, answer.result, output, answer.revision),
    )
    committed = write_round_commit(resources, log, commit)
    if committed.pause:
        resume_turn(resources, committed.pause)


def _build_output(pause: Pause, call: RoundCall, result: EditResult) -> ToolOutput:
    """Return the result in the form that the model reads.

    In an undo no model reads it. A conflict then keeps the editor's own words, which the report shows to the user.
    """
    output = result.output
    if output.conflict and not pause.undo_target:
        output = build_conflict_output(result, call.request_revision)
    tool = find_edit_tool(get_editor_toolset(pause.scope), call.tool_name)
    policy = tool.result_policy if tool else ResultPolicy()
    return limit_output(policy, output).model_copy(update={"conflict": output.conflict})
