"""Go on with a turn that waits for its client: apply the results and decisions in what the client has sent.

The log is the truth. What a client says about calls that it was never shown, approvals that were never asked for, or
other inputs than the stored ones is refused by name; what it says about calls that are answered is ignored.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeGuard

from fermata.aws.lazy_snapshot import LazySnapshot
from fermata.aws.resources import Resources
from fermata.client_protocols.client_messages import ClientAnswer
from fermata.domain.caller import Caller, Capability
from fermata.domain.errors import Conflict, Forbidden, InvalidRequest, NotFound
from fermata.tools.tool import Execution
from fermata.tools.tool_names import ToolNaming
from fermata.tools.toolset import Toolset
from fermata.turns.answer.submit_tool_result import submit_tool_result
from fermata.turns.approvals.approval_answer import ApprovalAnswer, ApprovalClosed
from fermata.turns.approvals.decide_approval import decide_approval
from fermata.turns.turn import Turn
from fermata.turns.turn_log import LogEntry, read_entries_from, read_whole_log
from fermata.turns.turn_toolset import CLIENT_TOOLSET, open_turn_toolset
from fermata.wire.bodies.find_snapshot import find_snapshot
from fermata.wire.bodies.turn_requests import SnapshotBody
from fermata.wire.http.routing import RequestContext
from fermata.wire.renderers.turn_fold import FoldedCall, TurnFold

_OUTPUT_MEMBERS = frozenset({"ok", "data", "error", "images", "revision", "conflict", "inverse"})
"""Those of an editor's results (docs/revisions-and-undo.md). Any other value is the data of a result."""


def make_turn_fold(resources: Resources, turn: Turn, settled: frozenset[str] = frozenset()) -> TurnFold:
    """Return the fold of a turn's log, before its first entry.

    Args:
        resources: Of the process.
        turn: The turn.
        settled: As `TurnFold` has it.
    """
    toolset = open_turn_toolset(resources, turn)

    def is_browser_tool(name: str) -> bool:
        tool = toolset.find_tool(name)
        return tool is not None and tool.execution is Execution.BROWSER

    return TurnFold(is_browser_tool, toolset.get_tool_namer(ToolNaming(turn.tool_names)), settled)


@dataclass
class ClientTurn:
    """A turn, and how far its log is known. Results and decisions of its client are applied to it."""

    resources: Resources
    caller: Caller
    turn: Turn
    snapshot: LazySnapshot | None = None
    revision: str = ""
    entries: list[LogEntry] = field(default_factory=list)
    fold: TurnFold = field(init=False)
    _toolset: Toolset = field(init=False)

    def __post_init__(self) -> None:
        self.fold = make_turn_fold(self.resources, self.turn)
        self._toolset = open_turn_toolset(self.resources, self.turn)
        self._add(read_whole_log(self.resources, self.turn.pk))

    @classmethod
    def open(cls, context: RequestContext, turn: Turn, body: SnapshotBody | None = None) -> "ClientTurn":
        """Return the turn, with its log as it is now.

        Args:
            context: The request.
            turn: The turn.
            body: Has the document's snapshot of an editor, if it sends one.
        """
        resources, caller = context.resources, context.caller
        snapshot = find_snapshot(resources, caller, body) if body else None
        return cls(resources, caller, turn, snapshot, (body.revision if body else None) or "")

    def apply(self, answers: Sequence[ClientAnswer]) -> int:
        """Apply what the client has answered, and return the first segment that it does not have.

        Args:
            answers: In the order of the client's message.

        Raises:
            Forbidden: The caller may not decide about calls.
            InvalidRequest: One is about a call or an approval that the client cannot know, or about another input.
            ApiError: As `decide_approval` and `submit_tool_result`.
        """
        named = [(self._find_call(answer), answer) for answer in answers]
        for call, answer in named:
            if answer.approval_id and call.answer is None:
                self._decide(call, answer)
        self._submit({call.call_id: answer for call, answer in named if not answer.approval_id})
        self._read_on()
        return max((self.fold.shown_in[call.call_id] + 1 for call, _ in named), default=0)

    def find_call_id(self, answer: ClientAnswer) -> str:
        """Return the id of the call that an answer is about.

        Raises:
            InvalidRequest: It is about a call or an approval that the client cannot know, or about another input.
        """
        return self._find_call(answer).call_id

    def _find_call(self, answer: ClientAnswer) -> FoldedCall:
        call = self._find_named_call(answer)
        if call is None or not call.is_shown:
            raise InvalidRequest(
                f"The call {answer.call_id[:120] or answer.approval_id[:120]!r} is not one that this conversation "
                "waits for."
            )
        if answer.approval_id:
            self._check_decision(call, answer)
        elif call.answer is None and not call.is_browser:
            raise InvalidRequest(f"The result of the call {call.call_id!r} comes from the service, not from a client.")
        return call

    def _find_named_call(self, answer: ClientAnswer) -> FoldedCall | None:
        if answer.call_id:
            return self.fold.calls.get(answer.call_id)
        calls = [call for call in self.fold.calls.values() if call.approval]
        return next((call for call in calls if call.approval and call.approval.approval_id == answer.approval_id), None)

    def _check_decision(self, call: FoldedCall, answer: ClientAnswer) -> None:
        if call.approval is None or call.approval.approval_id != answer.approval_id:
            raise InvalidRequest(
                f"The approval {answer.approval_id[:160]!r} was not asked for about the call {call.call_id!r}."
            )
        if answer.input is not None and answer.input != call.approval.input:
            raise InvalidRequest(
                f"The approval {answer.approval_id!r} is about another input than the call {call.call_id!r} has."
            )

    def _decide(self, call: FoldedCall, answer: ClientAnswer) -> None:
        if not self.caller.has_capability(Capability.APPROVE):
            raise Forbidden(f"You may not decide about the call {call.call_id!r}: that takes {Capability.APPROVE}.")
        decision = ApprovalAnswer(answer.is_approved, answer.reason, answer.changed_input)
        try:
            decide_approval(self.resources, self.caller, answer.approval_id, decision)
        except ApprovalClosed:
            if not call.is_decided or call.is_denied is answer.is_approved:
                raise  # else somebody else has decided the same

    def _submit(self, results: dict[str, ClientAnswer]) -> None:
        """Submit results in the order of the requests: each is made when the one before it is answered."""
        submitted = False
        while True:
            waiting = self.fold.list_waiting_calls()
            call = waiting[0] if waiting else None
            if call is None or call.request is None or call.call_id not in results:
                break
            self._submit_result(call, results[call.call_id])
            submitted = True
            self._read_on()
        if not submitted:
            self._repeat_last_result(results)

    def _repeat_last_result(self, results: dict[str, ClientAnswer]) -> None:
        """Send the last result again, because the request that stored it may have failed before the turn went on."""
        own_calls = (call for call in self.fold.calls.values() if call.call_id in results)
        answered = [call for call in own_calls if call.request and call.answer]
        if not answered or self.fold.is_over:
            return
        try:
            self._submit_result(answered[-1], results[answered[-1].call_id])
        except (Conflict, Forbidden, NotFound):
            return  # it was answered by somebody else, which is not this client's mistake

    def _submit_result(self, call: FoldedCall, answer: ClientAnswer) -> None:
        assert call.request is not None, call.call_id
        submit_tool_result(
            self.resources,
            self.caller,
            bridge_id=self.turn.id,
            request_id=call.request.request_id,
            result=self._build_result(call, answer),
            snapshot=self.snapshot,
            revision=self.revision,
        )

    def _build_result(self, call: FoldedCall, answer: ClientAnswer) -> dict[str, Any]:
        """Return the result as editors post it. One of an editor's own tools may have that form already."""
        if answer.error is not None:
            return {"ok": False, "error": answer.error}
        output = answer.output
        tool = self._toolset.find_tool(call.tool_name)
        is_own = tool is not None and tool.toolset not in (CLIENT_TOOLSET, "page")
        if (
            is_own
            and isinstance(output, dict)
            and isinstance(output.get("ok"), bool)
            and output.keys() <= _OUTPUT_MEMBERS
        ):
            return output
        return {"ok": True, "data": output}

    def _read_on(self) -> None:
        last = self.entries[-1]
        self._add(read_entries_from(self.resources, self.turn.pk, last.next_number))

    def _add(self, entries: Sequence[LogEntry]) -> None:
        for entry in entries:
            self.entries.append(entry)
            self.fold.fold(entry.events)


def _is_editor_result(output: Any) -> TypeGuard[dict[str, Any]]:
    return isinstance(output, dict) and isinstance(output.get("ok"), bool) and output.keys() <= _OUTPUT_MEMBERS
