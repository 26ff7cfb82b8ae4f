"""Parse the workflow's payload: which turn a function works on, with which token, and for how long."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from fermata.aws import observability
from fermata.aws.clock import new_id
from fermata.domain.value_dataclass import value_dataclass


@value_dataclass(frozen=True)
class Invocation:
    """One attempt of one state of one workflow execution."""

    tenant: str
    turn: str
    execution_number: int
    token: str
    """Task token: answering it moves the execution on."""
    epoch: str
    """Sorts invocations by time. The newest one owns the round; an older one stops when it meets it."""
    owner: str
    """Id of this invocation."""
    remaining_seconds: Callable[[], float]
    """Returns how long the function may still run."""
    hint: dict[str, Any] | None = None
    """Where the last log entry was seen, as `InvocationHint`. It decides nothing (decision 0004)."""
    is_hold: bool = False
    """Whether the state is Hold, which waits without a heartbeat and never works (decision 0005)."""


def build_epoch(execution_number: int, entered_at: str, retry: int) -> str:
    """Return a text that sorts invocations by time.

    Args:
        entered_at: ISO 8601 with any number of decimals, as the workflow writes it.
    """
    moment = datetime.fromisoformat(entered_at).astimezone(UTC).isoformat(timespec="microseconds")
    return f"{execution_number:04d}|{moment}|{retry:03d}"


def invocation_from_event(event: dict[str, Any], lambda_context: Any, *, is_hold: bool = False) -> Invocation:
    """Return the invocation of a Lambda event, and let its log lines carry request, turn and tenant.

    Args:
        event: The payload of statemachines/turn.asl.yaml.
        lambda_context: The context object of Lambda. Its request id may repeat when a request is delivered twice, so
            the owner gets a random part.
    """
    observability.reset_log_keys(request_id=lambda_context.aws_request_id, turn=event["turn"], tenant=event["tenant"])
    return Invocation(
        tenant=event["tenant"],
        turn=event["turn"],
        execution_number=event["n"],
        token=event["token"],
        epoch=build_epoch(event["n"], event["entered"], event["retry"]),
        owner=f"{lambda_context.aws_request_id}/{new_id(6)}",
        remaining_seconds=lambda: lambda_context.get_remaining_time_in_millis() / 1000,
        hint=event.get("hint"),
        is_hold=is_hold,
    )
