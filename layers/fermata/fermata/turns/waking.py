"""The workflow's payload understood: who wakes which turn, and for how long it may work."""

from typing import Any

from fermata.aws import signals
from fermata.aws.clock import new_id
from fermata.turns.work import Wake, epoch


def woken(event: dict[str, Any], context: Any, *, holds: bool = False) -> Wake:
    """`event` as statemachines/turn.asl.yaml makes it, `context` as Lambda gives it.

    A request delivered twice may keep its id, so the owner is told apart by a part of its own.
    """
    signals.afresh(request_id=context.aws_request_id, turn=event["turn"], tenant=event["tenant"])
    return Wake(
        tenant=event["tenant"],
        turn=event["turn"],
        n=event["n"],
        token=event["token"],
        epoch=epoch(event["n"], event["entered"], event["retry"]),
        owner=f"{context.aws_request_id}/{new_id(6)}",
        remaining=lambda: context.get_remaining_time_in_millis() / 1000,
        hint=event.get("hint"),
        holds=holds,
    )
