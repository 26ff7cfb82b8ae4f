"""Store the outcome of an attempt to deliver an event, and queue the next one unless there is none.

Each message asks for one attempt by its number, so a delivery has one chain of messages, whichever of them come twice
(decision 0549).
"""

from collections.abc import Mapping
from typing import Any, Protocol

from fermata.aws import observability
from fermata.aws.clock import iso_from_epoch
from fermata.aws.resources import Resources
from fermata.webhooks.delivery import Delivery, store_attempt
from fermata.webhooks.send_event import SendOutcome, get_next_wait


class AskedAttempt(Protocol):
    """What a message of the queue says about the attempt that it asks for."""

    @property
    def attempt(self) -> int: ...

    @property
    def is_redelivery(self) -> bool: ...

    @property
    def is_repeated(self) -> bool: ...


def is_attempt_due(resources: Resources, delivery: Delivery, asked: AskedAttempt, retry: Mapping[str, Any]) -> bool:
    """Return whether the attempt that a message asks for is still to be made.

    If it was the last one that was made, and the function that made it may have died before it queued the next one,
    that is queued now.

    Args:
        resources: The queue.
        delivery: As it is stored.
        asked: What the message says.
        retry: The message that asks for the next attempt, without its number.
    """
    if asked.is_redelivery:
        return True
    if delivery.state != "waiting":
        return False
    if asked.is_repeated and asked.attempt == delivery.attempts > 0:
        wait = get_next_wait(delivery.attempts, resources.clock.time() - delivery.at_ms / 1000)
        _queue_attempt(resources, retry, delivery.attempts + 1, wait or 0.0)
    return not asked.attempt or asked.attempt > delivery.attempts


def _queue_attempt(resources: Resources, retry: Mapping[str, Any], number: int, wait: float) -> None:
    resources.webhook_queue.send({**retry, "attempt": number}, delay_seconds=wait)


def record_attempt(
    resources: Resources,
    tenant: str,
    webhook_id: str,
    delivery: Delivery,
    outcome: SendOutcome,
    retry: Mapping[str, Any],
) -> None:
    """Store the outcome of an attempt, and queue the next one unless there is none.

    Args:
        resources: Tables and queue.
        tenant: The tenant's name.
        webhook_id: The webhook.
        delivery: As it was before the attempt.
        outcome: What the receiver has answered.
        retry: The message that asks for the next attempt, without its number.
    """
    now = resources.clock.time()
    wait = None if outcome.is_delivered else get_next_wait(delivery.attempts + 1, now - delivery.at_ms / 1000)
    state = "delivered" if outcome.is_delivered else "failed" if wait is None else "waiting"
    attempted = delivery.model_copy(
        update={
            "state": state,
            "attempts": delivery.attempts + 1,
            "status": outcome.status,
            "error": outcome.error,
            "attempted_at": iso_from_epoch(now),
        }
    )
    is_newest = store_attempt(resources, tenant, webhook_id, attempted)
    _log_attempt(tenant, webhook_id, attempted)
    if wait is not None and is_newest:
        # After the attempt is counted: a message that fails is repeated, and must not leave another one each time.
        _queue_attempt(resources, retry, attempted.attempts + 1, wait)


def _log_attempt(tenant: str, webhook_id: str, delivery: Delivery) -> None:
    facts = {"tenant": tenant, "webhook": webhook_id, "event_id": delivery.event_id, "attempt": delivery.attempts}
    if delivery.state == "delivered":
        observability.log_event("webhooks.delivered", **facts)
    else:
        is_given_up = delivery.state == "failed"
        observability.log_warning("webhooks.failed", **facts, status=delivery.status, given_up=is_given_up)
