"""Define a tenant's webhooks as they are stored: one row that lists them, with their sealed secrets.

t#<tenant>   webhooks   id, address, events and state of each; `sealed` holds their signing secrets
"""

import hashlib
import json
from typing import Any

from pydantic import Field

from fermata.aws.dynamodb_items_and_writes import Item, ItemKey
from fermata.aws.resources import Resources
from fermata.aws.vault import SecretUndecryptable
from fermata.domain.base import StoredModel
from fermata.webhooks.webhook_event import WebhookEvent

WEBHOOKS_SORT_KEY = "webhooks"
_USER_PREFIX = "webhook:"


class Webhook(StoredModel):
    """One webhook.

    Attributes:
        may_answer: Whether its response may carry the result of a tool request or the decision about an approval.
        owner_digest: Of who has set its address, from `digest_owner`; empty where nobody has noted it.
    """

    id: str
    url: str
    events: tuple[WebhookEvent, ...]
    enabled: bool = True
    may_answer: bool = False
    owner_digest: str = ""
    created_at: str
    updated_at: str

    def to_view(self) -> dict[str, Any]:
        """Return what administrators see, without the secret."""
        return {
            "id": self.id,
            "url": self.url,
            "events": [event.value for event in self.events],
            "enabled": self.enabled,
            "mayAnswer": self.may_answer,
            "createdAt": self.created_at,
            "updatedAt": self.updated_at,
        }


def make_webhook_user(webhook_id: str) -> str:
    """Return the name under which a webhook decides about approvals."""
    return _USER_PREFIX + webhook_id


def read_webhook_id(user: str) -> str:
    """Return the id of the webhook that acts under a name; empty if none does."""
    return user.removeprefix(_USER_PREFIX) if user.startswith(_USER_PREFIX) else ""


def digest_owner(webhook_id: str, person: str) -> str:
    """Return by what a webhook is known to answer for a person. The list of webhooks names nobody (decision 0542)."""
    return hashlib.sha256(f"{webhook_id}/{person}".encode()).hexdigest()


class RegisteredWebhooks(StoredModel, defer_build=False):
    """The webhooks of a tenant, the oldest first, and their sealed secrets by id."""

    webhooks: tuple[Webhook, ...] = ()
    sealed: dict[str, bytes] = Field(default_factory=dict)
    version: int = 0

    def find(self, webhook_id: str) -> Webhook | None:
        """Return the webhook with this id, or None."""
        return next((webhook for webhook in self.webhooks if webhook.id == webhook_id), None)

    @property
    def has_enabled(self) -> bool:
        """Whether any event would be delivered."""
        return any(webhook.enabled for webhook in self.webhooks)

    def to_item(self, tenant: str) -> Item:
        """Return the row of the settings table."""
        webhooks = [webhook.to_stored_json() for webhook in self.webhooks]
        return {
            "pk": f"t#{tenant}",
            "sk": WEBHOOKS_SORT_KEY,
            "v": 1,
            "version": self.version,
            "data": json.dumps(webhooks, separators=(",", ":")),
            "sealed": self.sealed,
        }

    @classmethod
    def from_item(cls, item: Item | None) -> "RegisteredWebhooks":
        """Return the webhooks that a row stores; none without a row."""
        if item is None:
            return cls()
        sealed = {name: bytes(value) for name, value in item["sealed"].items()}
        return cls(
            webhooks=tuple(Webhook.from_stored(value) for value in json.loads(item["data"])),
            sealed=sealed,
            version=item["version"],
        )


def build_webhooks_key(resources: Resources, tenant: str) -> ItemKey:
    """Return the key of the row that lists a tenant's webhooks."""
    return ItemKey(resources.settings.settings_table, f"t#{tenant}", WEBHOOKS_SORT_KEY)


def read_webhooks(resources: Resources, tenant: str) -> RegisteredWebhooks:
    """Return a tenant's webhooks as they are stored now."""
    return RegisteredWebhooks.from_item(resources.tables.get_item_by_key(build_webhooks_key(resources, tenant)))


def seal_webhook_secret(resources: Resources, tenant: str, webhook_id: str, secret: str) -> bytes:
    """Encrypt the signing secret of a webhook."""
    return resources.vault.seal_secret(secret, purpose="tool-secret", tenant=tenant, name=webhook_id)


def open_webhook_secret(resources: Resources, tenant: str, registered: RegisteredWebhooks, webhook_id: str) -> str:
    """Decrypt the signing secret of a webhook; empty if it can no longer be opened.

    Args:
        tenant: The tenant's name.
        registered: The tenant's webhooks.
        webhook_id: One of them.
    """
    sealed = registered.sealed.get(webhook_id, b"")
    try:
        return resources.vault.open_secret(sealed, purpose="tool-secret", tenant=tenant, name=webhook_id)
    except SecretUndecryptable:
        return ""
