"""Carry out calls of MCP clients that need a round: each starts a turn that calls the tool and asks no model.

So approvals, effect keys, recovery and the audit are those of every other call (decision 0444). A call that has to be
approved answers with words. The same call again joins the turn that waits, or takes the result that it has had since.

    t#<tenant>#turn#<turn>   mcp-delivered   the client has read the result (bridges table)
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fermata.aws.dynamodb_items_and_writes import Put
from fermata.aws.resources import Resources
from fermata.client_protocols.chat_conversations import find_chat, open_chat
from fermata.client_protocols.client_messages import ClientPrompt
from fermata.client_protocols.client_turns import ClientRequest, find_client_turn, start_client_turn
from fermata.client_protocols.mcp_calls import build_call_counts, build_mcp_result, require_room_for_prompt
from fermata.conversations.discard_unused import discard_unused_conversation
from fermata.conversations.message_store import read_newest_messages
from fermata.domain.blocks import TextBlock
from fermata.domain.conversation import Conversation
from fermata.domain.errors import ApiError
from fermata.domain.events import (
    ApprovalDecidedEvent,
    ApprovalRequestedEvent,
    CancelledEvent,
    ErrorEvent,
    TerminalEvent,
    ToolResultEvent,
)
from fermata.domain.json_shortening import shorten_text
from fermata.domain.tools import DirectCall, ToolOutput
from fermata.limits.reader_leases import ReaderLease
from fermata.turns.direct_tools import DirectTool
from fermata.turns.turn import Turn, load_turn
from fermata.turns.turn_log import read_end_type, read_entries_from
from fermata.wire.http.routing import RequestContext

APPROVAL_WORDS = (
    "This call waits until a person approves it: approval {id}, until {deadline}. Nothing has been done yet. Ask the "
    "user to decide about it in the list of approvals, then call again with the same input to get the result."
)
CANCELLED_CALL_MESSAGE = "The call was cancelled."
SILENT_CALL_MESSAGE = "The call has ended without a result."
MAX_SHOWN_INPUT_CHARS = 2_000


def open_direct_call(context: RequestContext, direct: DirectTool, arguments: Mapping[str, Any]) -> "DirectToolCall":
    """Begin a call, or go on with the same one that a person had to approve.

    Args:
        context: The request of the client.
        direct: The tool.
        arguments: As the client sent them.

    Raises:
        ApiError: The call cannot begin, for example because a limit is reached.
    """
    text = json.dumps(arguments, sort_keys=True, ensure_ascii=False)
    lease = ReaderLease.take(context.resources, context.caller, context.caller_limits)
    with lease.released_on_failure():
        turn = _find_or_start(context, direct, dict(arguments), text)
    return DirectToolCall(context.resources, turn, lease)


def _find_or_start(context: RequestContext, direct: DirectTool, arguments: dict[str, Any], text: str) -> Turn:
    digest = hashlib.sha256(f"{direct.tool.name} {text}".encode()).hexdigest()[:32]
    name = f"mcp {digest}"
    is_new = find_chat(context.resources, context.caller, direct.scope, name) is None
    if is_new:
        require_room_for_prompt(context)
    conversation = open_chat(context.resources, context.caller, direct.scope, name)
    if waiting := _find_earlier_call(context, conversation):
        return waiting
    words = f"Call of {direct.tool.name}: {shorten_text(text, MAX_SHOWN_INPUT_CHARS)}"
    request = ClientRequest(
        protocol="mcp",
        conversation=conversation,
        prompt=ClientPrompt((TextBlock(text=words),)),
        client_tools=(),
        has_browser_tools=False,
        direct_call=DirectCall(tool_name=direct.tool.name, input=arguments),
        build_start_writes=lambda _turn: build_call_counts(context),
    )
    try:
        return start_client_turn(context, None, request).turn
    except ApiError:
        if is_new:
            discard_unused_conversation(context.resources, conversation)
        raise


def _find_earlier_call(context: RequestContext, conversation: Conversation) -> Turn | None:
    """Return the turn of the same call that still runs or waits, or whose approved result nobody has read."""
    resources, caller = context.resources, context.caller
    running = find_client_turn(resources, caller, conversation)
    if running and read_end_type(resources, running) is None:
        return running
    newest = read_newest_messages(resources, conversation.tenant, conversation.id, limit=1)
    turn = load_turn(resources, caller.tenant, newest[0].turn) if newest else None
    if turn is None or turn.direct_call is None or not _was_decided(resources, turn) or _is_delivered(resources, turn):
        return None
    return turn


def _was_decided(resources: Resources, turn: Turn) -> bool:
    entries = read_entries_from(resources, turn.pk, 1)
    return any(isinstance(event, ApprovalDecidedEvent) for entry in entries for event in entry.events)


def _is_delivered(resources: Resources, turn: Turn) -> bool:
    table = resources.settings.bridges_table
    return resources.tables.get_item(table, turn.pk, "mcp-delivered") is not None


@dataclass
class DirectToolCall:
    """A call that a turn makes."""

    resources: Resources
    turn: Turn
    lease: ReaderLease
    next_number: int = 1
    output: ToolOutput | None = None
    approval: ApprovalRequestedEvent | None = None
    end: TerminalEvent | None = field(default=None)

    def advance(self) -> dict[str, Any] | None:
        """Read the log on, up to the result or an approval that is asked for."""
        for entry in read_entries_from(self.resources, self.turn.pk, self.next_number):
            for event in entry.events:
                match event:
                    case ToolResultEvent():
                        self.output = ToolOutput(ok=event.ok, data=event.output, error=event.error)
                    case ApprovalRequestedEvent():
                        self.approval = event
                    case ApprovalDecidedEvent():
                        self.approval = None
                    case TerminalEvent():
                        self.end = event
            self.next_number = entry.next_number
        if self.end is not None:
            self._note_delivery()
            return self._finish(self.output or ToolOutput.failure(_describe_end(self.end)))
        if self.approval is not None:
            words = APPROVAL_WORDS.format(id=self.approval.approval_id, deadline=self.approval.deadline)
            return self._finish(ToolOutput.failure(words))
        return None

    def _finish(self, output: ToolOutput) -> dict[str, Any]:
        self.lease.release()
        return build_mcp_result(output)

    def _note_delivery(self) -> None:
        turn = self.turn
        item = {"pk": turn.pk, "sk": "mcp-delivered", "v": 1, "ttl": turn.expires}
        self.resources.tables.write_items(Put(self.resources.settings.bridges_table, item, if_absent=True))

    def close(self) -> None:
        """Count the reader no more. The turn goes on by itself."""
        self.resources.clock.start_thread(self.lease.release, "release-reader")


def _describe_end(end: TerminalEvent) -> str:
    match end:
        case ErrorEvent():
            return end.message
        case CancelledEvent():
            return CANCELLED_CALL_MESSAGE
        case _:
            return SILENT_CALL_MESSAGE
