"""Carry out the calls of MCP clients: tools of the service, tools of the open editor, and agents (decision 0378)."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from fermata.agents.approval_policy import NO_POLICY, CallFacts, Effect, judge_call
from fermata.agents.policy_store import read_policy
from fermata.aws.clock import new_id
from fermata.aws.dynamodb_items_and_writes import Update
from fermata.aws.resources import Resources
from fermata.client_protocols.mcp_tools import EditorTool, find_agent_of_tool, find_direct_tool, find_editor_tool
from fermata.domain.blocks import ToolCallBlock
from fermata.domain.caller import Caller
from fermata.domain.tools import ToolOutput
from fermata.domain.workspace_plan import PlanMeter
from fermata.editor_bridge.editor_call import EditorCall, read_editor_call, request_editor_call
from fermata.editor_bridge.open_editors import OpenEditor, list_open_editors, read_editor
from fermata.limits.count_use import UseCounter
from fermata.limits.metered_uses import MeteredUse, build_use_counts, reserve_metered_use
from fermata.limits.reader_leases import ReaderLease
from fermata.limits.usage_counters import Use
from fermata.tools.calls.pipeline import AdmittedCall, admit_call, apply_result_policy, get_timeout_seconds
from fermata.tools.calls.runner import run_tool
from fermata.tools.tool import Access, Execution, ToolContext
from fermata.tools.tool_names import ToolNaming, get_wire_name
from fermata.tools.toolset import Toolset
from fermata.wire.http.routing import RequestContext

NO_EDITOR_MESSAGE = "No {} editor is open. Ask the user to open it in a browser, and call again."
CLOSED_EDITOR_MESSAGE = "The editor was closed before it answered. Check the document before you repeat the call."
NO_ANSWER_MESSAGE = "The editor did not answer in time. Check the document before you repeat the call."
NO_SNAPSHOT_MESSAGE = (
    "The open editor has not sent its document yet. Call a tool that runs in the editor first, such as "
    "site_read_document."
)
NEEDS_PERSON_MESSAGE = "A person has to approve this call, which is possible in the editor's own assistant only."


class UnknownTool(Exception):
    """There is no tool of this name that the caller may call."""


class McpCall(Protocol):
    """A call under way."""

    def advance(self) -> dict[str, Any] | None:
        """Return the result as the protocol has it; None as long as there is none."""

    def close(self) -> None:
        """Count the call no more. Safe to repeat."""


def open_mcp_call(context: RequestContext, name: str, arguments: Mapping[str, Any], space: str = "") -> McpCall:
    """Begin a call.

    Args:
        context: The request of the client.
        name: The tool, as it was listed.
        arguments: As the client sent them.
        space: The content space that an agent works in, as the client or its connector names it.

    Raises:
        UnknownTool: There is no such tool.
        ApiError: The call cannot begin, for example because a limit is reached.
    """
    resources, caller = context.resources, context.caller
    if found := find_editor_tool(caller, name):
        return _open_editor_call(context, found, arguments)
    if direct := find_direct_tool(resources, caller, name):
        from fermata.client_protocols.mcp_direct_calls import open_direct_call  # most calls are for the editor

        return open_direct_call(context, direct, arguments)
    if scope := find_agent_of_tool(resources, caller, name, space):
        from fermata.client_protocols.mcp_agent_calls import ask_agent  # likewise

        return ask_agent(context, scope, arguments, space)
    raise UnknownTool(name)


@dataclass
class SettledCall:
    """A call whose result is known."""

    output: ToolOutput

    def advance(self) -> dict[str, Any]:
        """Return the result."""
        return build_mcp_result(self.output)

    def close(self) -> None:
        """Do nothing."""


def _open_editor_call(context: RequestContext, found: EditorTool, arguments: Mapping[str, Any]) -> McpCall:
    resources, caller = context.resources, context.caller
    editors = [one for one in list_open_editors(resources, caller.tenant, caller.user) if one.scope == found.scope]
    editor = editors[0] if editors else None
    if editor:  # its tools may have other schemas than the newest editor's
        found = find_editor_tool(caller, _get_listed_name(found), editor.generation) or found
    admitted = _admit(context, found, arguments)
    if isinstance(admitted, ToolOutput):
        return SettledCall(admitted)
    is_run_here = admitted.tool.execution is Execution.SERVER
    if editor is None and not is_run_here:
        return SettledCall(ToolOutput.failure(NO_EDITOR_MESSAGE.format(found.scope)))
    if editor is None or is_run_here:
        _count_call(context)
        return SettledCall(_run_here(context, found, admitted, editor))
    return EditorToolCall.start(context, editor, admitted)


def _count_call(context: RequestContext) -> None:
    use = _make_call_use(context)
    reserve_metered_use(context.resources, context.caller.tenant, context.tenant.subscription, use)


def _make_call_use(context: RequestContext) -> MeteredUse:
    return MeteredUse(PlanMeter.MCP_CALLS, new_id(), context.caller.user)


def build_call_counts(context: RequestContext) -> Sequence[Update]:
    """Build the writes that count a call for the plan of its workspace, with the START of the turn that makes it.

    Args:
        context: The request of the client.

    Raises:
        PlanLocked: Nobody pays for the workspace.
        PlanUpgradeRequired: The plan has no calls of MCP clients.
        PlanLimitReached: Those of the month are made.
    """
    subscription = context.tenant.subscription
    return build_use_counts(context.resources, context.caller.tenant, subscription, _make_call_use(context))


def require_room_for_prompt(context: RequestContext) -> None:
    """Return if its limits let the caller send a prompt now. It is asked before a conversation begins for one.

    Args:
        context: The request of the client.

    Raises:
        TooManyRequests: A limit is reached.
    """
    name = new_id()
    counter = UseCounter(context.resources, context.caller, context.caller_limits, name)
    counter.require_room(Use(prompts=1, turn=name))


def _get_listed_name(found: EditorTool) -> str:
    return get_wire_name(found.tool, ToolNaming.PREFIXED)


def _admit(context: RequestContext, found: EditorTool, arguments: Mapping[str, Any]) -> AdmittedCall | ToolOutput:
    """Check a call as those of models are checked, and refuse what a person would have to approve."""
    block = ToolCallBlock(tool_call_id=context.request.id[:60], tool_name=found.tool.name, input=dict(arguments))
    toolset = Toolset(found.scope, (found.tool,))
    admitted = admit_call(toolset, block, _build_tool_context(context.caller, found.scope, ""))
    if isinstance(admitted, ToolOutput):
        return admitted
    policy = read_policy(context.resources, context.caller.tenant).policy
    verdict = judge_call(CallFacts(agent=found.scope, tool=found.tool), policy, NO_POLICY)
    if verdict.effect is Effect.DENY or verdict.reasons or admitted.needs_confirmation:
        return ToolOutput.failure(NEEDS_PERSON_MESSAGE)
    return admitted


def _build_tool_context(caller: Caller, scope: str, effect_key: str) -> ToolContext:
    return ToolContext(
        tenant=caller.tenant,
        user=caller.user,
        capabilities=caller.capabilities,
        scope=scope,
        turn=effect_key.partition("/")[0],
        effect_key=effect_key,
    )


def _run_here(
    context: RequestContext, found: EditorTool, admitted: AdmittedCall, editor: OpenEditor | None
) -> ToolOutput:
    """Run a tool of the service, which reads what the open editor has posted last. No content system is asked here."""
    resources = context.resources
    snapshot = resources.blobs.get_json(editor.snapshot) if editor and editor.snapshot else None
    works = admitted.tool.works_without_host
    if works is not None and not works(snapshot):
        return ToolOutput.failure(NO_SNAPSHOT_MESSAGE)
    tool_context = replace(_build_tool_context(context.caller, found.scope, f"{new_id()}/1/0"), snapshot=snapshot)
    output = run_tool(admitted, tool_context, clock=resources.clock)
    return apply_result_policy(admitted.tool, output)


@dataclass
class EditorToolCall:
    """A call that the open editor carries out."""

    resources: Resources
    editor: OpenEditor
    call: EditorCall
    admitted: AdmittedCall
    lease: ReaderLease

    @classmethod
    def start(cls, context: RequestContext, editor: OpenEditor, admitted: AdmittedCall) -> McpCall:
        """Send the call to the editor. One that a limit refuses does not count for the plan."""
        tool, resources = admitted.tool, context.resources
        lease = ReaderLease.take(resources, context.caller, context.caller_limits)
        vision = {tool.vision_flag: True} if tool.vision_flag else {}
        with lease.released_on_failure():
            _count_call(context)
            call = request_editor_call(
                resources,
                editor,
                get_wire_name(tool, ToolNaming(editor.tool_names)),
                {**admitted.arguments, **tool.extra_browser_input, **vision},
                is_edit=tool.access is Access.WRITE,
                seconds=get_timeout_seconds(tool, resources.settings.browser_wait_seconds),
            )
        if call is None:
            lease.release()
            return SettledCall(ToolOutput.failure(NO_EDITOR_MESSAGE.format(editor.scope)))
        return cls(resources, editor, call, admitted, lease)

    def advance(self) -> dict[str, Any] | None:
        """Look for the answer. An editor that has closed, or is too late, gives none."""
        call = read_editor_call(self.resources, self.editor, self.call.request_id)
        output = call.output if call else ToolOutput.failure(CLOSED_EDITOR_MESSAGE)
        if output is None and self.resources.clock.time() >= self.call.deadline:
            output = ToolOutput.failure(NO_ANSWER_MESSAGE)
        if output is None and not self._is_open():
            output = ToolOutput.failure(CLOSED_EDITOR_MESSAGE)
        if output is None:
            return None
        self.lease.release()
        return build_mcp_result(apply_result_policy(self.admitted.tool, output))

    def _is_open(self) -> bool:
        return read_editor(self.resources, self.editor.tenant, self.editor.user, self.editor.id) is not None

    def close(self) -> None:
        """Count the call no more."""
        self.resources.clock.start_thread(self.lease.release, "release-reader")


def build_mcp_result(output: ToolOutput) -> dict[str, Any]:
    """Return an output as the result of a call: text, images beside it, and the data of an object once more."""
    if not output.ok:
        return {"content": [{"type": "text", "text": output.error or ""}], "isError": True}
    data = {"ok": True} if output.data is None else output.data
    text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    content: list[dict[str, Any]] = [{"type": "text", "text": text}]
    content += [{"type": "image", "data": image.data, "mimeType": image.mime_type} for image in output.images or ()]
    structured = {"structuredContent": data} if isinstance(data, dict) else {}
    return {"content": content, **structured, "isError": False}
