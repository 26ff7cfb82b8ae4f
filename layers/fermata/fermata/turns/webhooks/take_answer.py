"""Take the answer that a webhook's response carries: the result of a tool request, or a decision."""

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from fermata.aws import observability
from fermata.aws.resources import Resources
from fermata.aws.security_events import log_refusal
from fermata.domain.caller import Caller, Capability
from fermata.domain.errors import ApiError, ServiceUnavailable
from fermata.domain.events import ApprovalRequestedEvent, Event, ToolRequestEvent
from fermata.turns.answer.submit_tool_result import submit_tool_result
from fermata.turns.approvals.approval_answer import ApprovalAnswer
from fermata.turns.approvals.decide_approval import decide_approval
from fermata.turns.turn import Turn
from fermata.webhooks.webhook import make_webhook_user

MAX_ANSWER_REASON_CHARS = 1000
MAX_LOGGED_CHARS = 200


def take_answer(resources: Resources, turn: Turn, webhook_id: str, event: Event, response: Mapping[str, Any]) -> None:
    """Submit what a response says. One that says nothing, that nobody can read, or comes too late, changes nothing.

    Args:
        resources: Tables, bucket and workflow.
        turn: The turn of the event.
        webhook_id: Who answers.
        event: What was delivered.
        response: The JSON object of the response: `{"result": …}`, or `{"approved": …, "reason"?: …}`.

    Raises:
        ServiceUnavailable: The answer could not be stored now. The event has to be delivered again.
    """
    try:
        if isinstance(event, ToolRequestEvent) and isinstance(response.get("result"), dict):
            _submit_result(resources, turn, event, response["result"])
        elif isinstance(event, ApprovalRequestedEvent) and isinstance(response.get("approved"), bool):
            _decide(resources, turn, webhook_id, event, response)
    except ServiceUnavailable:
        raise
    except (ApiError, ValidationError) as refusal:
        if isinstance(refusal, ApiError):
            log_refusal(refusal, tenant=turn.tenant)
        reason = str(refusal)[:MAX_LOGGED_CHARS]
        observability.log_warning("webhooks.answer_refused", turn=turn.id, webhook=webhook_id, reason=reason)


def _submit_result(resources: Resources, turn: Turn, event: ToolRequestEvent, result: Mapping[str, Any]) -> None:
    if type(result.get("ok")) is not bool:
        return
    capabilities = frozenset(turn.capabilities) & {Capability.CHAT, Capability.WRITE}
    caller = Caller(tenant=turn.tenant, user=turn.user, capabilities=capabilities)
    submit_tool_result(
        resources, caller, bridge_id=turn.id, request_id=event.request_id, result=dict(result), snapshot=None
    )


def _decide(
    resources: Resources, turn: Turn, webhook_id: str, event: ApprovalRequestedEvent, response: Mapping[str, Any]
) -> None:
    capabilities = frozenset({Capability.APPROVE, Capability.CHAT, Capability.WRITE})
    caller = Caller(tenant=turn.tenant, user=make_webhook_user(webhook_id), capabilities=capabilities)
    reason = response.get("reason")
    answer = ApprovalAnswer(
        is_approved=response["approved"],
        reason=reason[:MAX_ANSWER_REASON_CHARS] if isinstance(reason, str) else "",
        input_hash=event.input_hash,
    )
    decide_approval(resources, caller, event.approval_id, answer)
