"""Read the decisions of OpenAI's clients about calls that wait for an approval (decision 0441).

A client of the Responses API sends items of the type `mcp_approval_response`. One of chat completions answers the call
of its function `decide_approval`, or, where it has declared none, sends lines of text as its user's message.
"""

from collections.abc import Sequence
from typing import Any

from fermata.client_protocols.client_messages import ClientAnswer, parse_tool_content
from fermata.client_protocols.openai_transcript import TranscriptMessage
from fermata.domain.errors import InvalidRequest
from fermata.domain.value_dataclass import value_dataclass
from fermata.turns.approvals.approval_record import parse_approval_id
from fermata.wire.renderers.turn_fold import FoldedCall

MAX_WRITTEN_REASON_CHARS = 500
_VERBS = {"approve": True, "deny": False}


@value_dataclass(frozen=True)
class WrittenDecision:
    """A decision that a user has written as a line of a message."""

    approval_id: str
    turn: str
    answer: ClientAnswer


def read_written_decisions(message: TranscriptMessage) -> list[WrittenDecision]:
    """Return the decisions in a user's message; none if a line of it is anything else.

    Args:
        message: The message, which is a prompt then.
    """
    lines = [line.split(None, 2) for line in message.text.splitlines() if line.strip()]
    decisions = [_read_line(words) for words in lines]
    known = [decision for decision in decisions if decision is not None]
    return known if len(known) == len(lines) and not message.parts else []


def _read_line(words: Sequence[str]) -> WrittenDecision | None:
    place = parse_approval_id(words[1]) if len(words) > 1 else None
    verb = words[0].lower().removesuffix(":")
    if place is None or verb not in _VERBS:
        return None
    reason = words[2].strip()[:MAX_WRITTEN_REASON_CHARS] if len(words) > 2 else ""
    answer = ClientAnswer(approval_id=words[1], is_approved=_VERBS[verb], reason=reason)
    return WrittenDecision(words[1], place.turn, answer)


def read_decision_result(call: FoldedCall, content: str) -> ClientAnswer:
    """Return the decision about a call in the content of a tool message.

    Args:
        call: The call, as the turn has it.
        content: A JSON object with `approved`, and perhaps `reason` and `input`.

    Raises:
        InvalidRequest: It is none, or the call waits for no approval.
    """
    if call.approval is None:
        raise InvalidRequest(f"No approval was asked for about the call {call.tool_name!r}.")
    decision = parse_tool_content(content)
    if not isinstance(decision, dict) or not isinstance(decision.get("approved"), bool):
        raise InvalidRequest(
            'A decision is a JSON object whose "approved" is true or false, for example {"approved": true}.'
        )
    reason: Any = decision.get("reason")
    changed = decision.get("input")
    if changed is not None and not isinstance(changed, dict):
        raise InvalidRequest("The 'input' of a decision is an object: the whole input that the call gets instead.")
    return ClientAnswer(
        approval_id=call.approval.approval_id,
        is_approved=decision["approved"],
        reason=reason[:MAX_WRITTEN_REASON_CHARS] if isinstance(reason, str) else "",
        changed_input=changed,
    )
