"""The workflow's payload understood: who wakes which turn, and for how long it may work."""

from typing import Any

from fermata.aws import observability
from fermata.aws.clock import new_id
from fermata.turns.round.turn_context import Invocation, build_epoch


def invocation_from_event(event: dict[str, Any], lambda_context: Any, *, is_hold: bool = False) -> Invocation:
    """`event` as statemachines/turn.asl.yaml makes it, `context` as Lambda gives it.

    A request delivered twice may keep its id, so the owner is told apart by a part of its own.
    """
    observability.reset_log_keys(request_id=lambda_context.aws_request_id, turn=event["turn"], tenant=event["tenant"])
    return Invocation(
        tenant=event["tenant"],
        turn=event["turn"],
        execution_number=event["n"],
        token=event["token"],
        epoch=build_epoch(event["n"], event["entered"], event["retry"]),
        owner=f"{lambda_context.aws_request_id}/{new_id(6)}",
        remaining=lambda: lambda_context.get_remaining_time_in_millis() / 1000,
        hint=event.get("hint"),
        is_hold=is_hold,
    )
