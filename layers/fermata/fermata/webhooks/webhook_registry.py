"""Register, change, list and remove the webhooks of a tenant."""

from collections.abc import Collection
from typing import Any, NamedTuple

from fermata.aws import observability
from fermata.aws.api_key_rows import find_person
from fermata.aws.clock import new_id
from fermata.aws.dynamodb_items_and_writes import ConditionCheck, ConditionFailed, Put, TransactionCanceled
from fermata.aws.resources import Resources
from fermata.aws.security_events import log_refused_address
from fermata.domain.caller import Caller, Capability
from fermata.domain.errors import Conflict, Forbidden, InvalidRequest, NotFound
from fermata.drivers.transport.url_guard import UrlGuard
from fermata.signed_requests.signature import make_signing_secret
from fermata.webhooks.webhook import (
    RegisteredWebhooks,
    Webhook,
    digest_owner,
    read_webhooks,
    seal_webhook_secret,
)
from fermata.webhooks.webhook_event import TURN_EVENTS, WebhookEvent

MAX_WEBHOOKS = 10
_RIGHTS_OF_ANSWERS = {
    WebhookEvent.TOOL_REQUEST: Capability.WRITE,
    WebhookEvent.APPROVAL_REQUEST: Capability.APPROVE,
}
"""What a response to an event does with its answer."""


class StoredWebhook(NamedTuple):
    """A webhook after a change. `signing_secret` is set when it is new; it cannot be read again."""

    view: dict[str, Any]
    signing_secret: str | None = None


class WebhookChange(NamedTuple):
    """What changes of a webhook. None keeps what is there."""

    url: str | None = None
    events: Collection[WebhookEvent] | None = None
    enabled: bool | None = None
    may_answer: bool | None = None


def list_webhooks(resources: Resources, tenant: str) -> list[dict[str, Any]]:
    """Return the views of a tenant's webhooks, the oldest first."""
    return [webhook.to_view() for webhook in read_webhooks(resources, tenant).webhooks]


def add_webhook(
    resources: Resources, caller: Caller, url: str, events: Collection[WebhookEvent], *, may_answer: bool = False
) -> StoredWebhook:
    """Register a webhook. Turns that start from now on are told about.

    Args:
        caller: The administrator.
        url: Where events are posted to.
        events: Which; none for all events of turns.
        may_answer: Whether its responses may answer.

    Raises:
        Forbidden: Its responses may do what the caller may not.
        InvalidRequest: The address is not allowed, or the tenant has too many webhooks.
        Conflict: The webhooks have just changed.
    """
    _check_url(resources, url)
    registered = read_webhooks(resources, caller.tenant)
    if len(registered.webhooks) >= MAX_WEBHOOKS:
        raise InvalidRequest(f"A tenant has {MAX_WEBHOOKS} webhooks at most. Remove one that is not used.")
    now, secret, webhook_id = resources.clock.now_iso(), make_signing_secret(), new_id(12)
    webhook = Webhook(
        id=webhook_id,
        url=url,
        events=_order(events),
        may_answer=may_answer,
        owner_digest=_digest_caller(resources, caller, webhook_id),
        created_at=now,
        updated_at=now,
    )
    _require_rights(caller, webhook)
    sealed = registered.sealed | {webhook_id: seal_webhook_secret(resources, caller.tenant, webhook_id, secret)}
    _store(resources, caller, registered, (*registered.webhooks, webhook), sealed)
    observability.log_audit_event("ai.webhook.added", tenant=caller.tenant, user=caller.user, webhook=webhook_id)
    return StoredWebhook(webhook.to_view(), secret)


def change_webhook(resources: Resources, caller: Caller, webhook_id: str, change: WebhookChange) -> StoredWebhook:
    """Change a webhook, or turn it on or off.

    Args:
        caller: The administrator.
        webhook_id: The webhook's id, as a client sent it.
        change: What is changed.

    Raises:
        NotFound: The tenant has no such webhook.
        Forbidden: Its responses may do what the caller may not.
        InvalidRequest: The address is not allowed.
        Conflict: The webhooks have just changed.
    """
    registered = read_webhooks(resources, caller.tenant)
    webhook = _require(registered, webhook_id)
    update: dict[str, Any] = {"updated_at": resources.clock.now_iso()}
    if change.url is not None:
        _check_url(resources, change.url)
        update |= {"url": change.url, "owner_digest": _digest_caller(resources, caller, webhook_id)}
    if change.events is not None:
        update["events"] = _order(change.events)
    if change.enabled is not None:
        update["enabled"] = change.enabled
    if change.may_answer is not None:
        update["may_answer"] = change.may_answer
    changed = webhook.model_copy(update=update)
    _require_rights(caller, changed)
    webhooks = tuple(changed if one.id == webhook_id else one for one in registered.webhooks)
    _store(resources, caller, registered, webhooks, registered.sealed)
    observability.log_audit_event("ai.webhook.changed", tenant=caller.tenant, user=caller.user, webhook=webhook_id)
    return StoredWebhook(changed.to_view())


def remove_webhook(resources: Resources, caller: Caller, webhook_id: str) -> None:
    """Remove a webhook. What waits for it is not delivered any more.

    Args:
        caller: The administrator.
        webhook_id: The webhook's id, as a client sent it.

    Raises:
        NotFound: The tenant has no such webhook.
        Conflict: The webhooks have just changed.
    """
    registered = read_webhooks(resources, caller.tenant)
    _require(registered, webhook_id)
    webhooks = tuple(one for one in registered.webhooks if one.id != webhook_id)
    sealed = {one: secret for one, secret in registered.sealed.items() if one != webhook_id}
    _store(resources, caller, registered, webhooks, sealed)
    observability.log_audit_event("ai.webhook.removed", tenant=caller.tenant, user=caller.user, webhook=webhook_id)


def _digest_caller(resources: Resources, caller: Caller, webhook_id: str) -> str:
    return digest_owner(webhook_id, find_person(resources, caller.tenant, caller.user))


def _require_rights(caller: Caller, webhook: Webhook) -> None:
    """Check that the caller may do what a webhook's responses may, and read what it is told, whoever is at its address.

    A webhook hears of all spaces of the tenant, also of those whose members are listed. So events of content take the
    right that needs no membership.
    """
    is_told_of_content = any(event.is_of_content for event in webhook.events)
    if is_told_of_content and webhook.enabled and not caller.has_capability(Capability.CONTENT):
        raise Forbidden(f"Forbidden: a webhook that is told about content needs {Capability.CONTENT}.")
    if not (webhook.may_answer and webhook.enabled):
        return
    missing = [right for event, right in _RIGHTS_OF_ANSWERS.items() if event in webhook.events]
    missing = [right for right in missing if not caller.has_capability(right)]
    if missing:
        raise Forbidden(f"Forbidden: you lack what this webhook's responses may do: {', '.join(missing)}.")


def _order(events: Collection[WebhookEvent]) -> tuple[WebhookEvent, ...]:
    return tuple(event for event in WebhookEvent if event in (events or TURN_EVENTS))


def _require(registered: RegisteredWebhooks, webhook_id: str) -> Webhook:
    webhook = registered.find(webhook_id)
    if webhook is None:
        raise NotFound("The tenant has no such webhook.")
    return webhook


def _check_url(resources: Resources, url: str) -> None:
    guard = UrlGuard(loopback=resources.settings.is_loopback_allowed, on_refusal=log_refused_address)
    guard.check_url_and_host(url)


def _store(
    resources: Resources,
    caller: Caller,
    registered: RegisteredWebhooks,
    webhooks: tuple[Webhook, ...],
    sealed: dict[str, bytes],
) -> None:
    changed = RegisteredWebhooks(webhooks=webhooks, sealed=sealed, version=registered.version + 1)
    table, is_new = resources.settings.settings_table, registered.version == 0
    put = Put(
        table,
        changed.to_item(caller.tenant),
        if_absent=is_new,
        condition="" if is_new else "version = :before",
        values={} if is_new else {":before": registered.version},
    )
    tenant_exists = ConditionCheck(table, f"t#{caller.tenant}", "tenant", "attribute_exists(pk)")
    try:
        resources.tables.write_items(put, tenant_exists)
    except (ConditionFailed, TransactionCanceled) as error:
        message = "The webhooks have just been changed by another request. Look at them, and try again."
        raise Conflict(message) from error
