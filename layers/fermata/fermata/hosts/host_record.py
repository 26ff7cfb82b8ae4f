"""Define a tenant's host as the settings table stores it: its URL and the secrets that sign requests to it."""

from typing import Annotated, Any

from pydantic import BeforeValidator

from fermata.aws.dynamodb_items_and_writes import Item, ItemKey
from fermata.aws.resources import Resources
from fermata.content.content_space import SpaceKey, parse_space_name
from fermata.domain.base import RecordModel

HOST_SORT_KEY = "host"
CONTENT_SCHEME = "content:"
"""Begins the address of a host that is a space of the tenant in the content store: `content:site/environment`."""


class HostSecret(RecordModel):
    """A sealed secret. It signs requests from `since` (epoch seconds) on, so that the host can install it first."""

    id: str
    sealed: Annotated[bytes, BeforeValidator(bytes)]
    since: int
    created_at: str


class HostRecord(RecordModel):
    """A tenant's host. It has one secret, or two after a rotation; the newest is last. The content store needs none."""

    tenant: str
    url: str
    secrets: tuple[HostSecret, ...]
    version: int = 1
    created_at: str
    updated_at: str

    @property
    def space(self) -> SpaceKey | None:
        """The space of the content store that is the host; None for a server of the tenant."""
        return parse_host_space(self.tenant, self.url)

    def get_signing_secret(self, now: float) -> HostSecret:
        """Return the newest secret that is in effect at `now`, or the oldest if a clock is behind."""
        return next((secret for secret in reversed(self.secrets) if secret.since <= now), self.secrets[0])

    def to_item(self) -> Item:
        """Return the item of the settings table. Its secrets are sealed."""
        return {"pk": host_partition(self.tenant), "sk": HOST_SORT_KEY, "v": 1, **self.model_dump()}

    def to_operator_view(self) -> dict[str, Any]:
        """Return what operators may see: the ids and dates of the secrets, but not the secrets, sealed or open."""
        view = self.to_known(exclude=frozenset({"secrets", "tenant"}))
        return view | {"secrets": [secret.to_known(exclude=frozenset({"sealed"})) for secret in self.secrets]}


def parse_host_space(tenant: str, url: str) -> SpaceKey | None:
    """Return the space that a host's address means, which is always one of the tenant; None if it is another address.

    Raises:
        InvalidRequest: It begins as such an address, and names no space.
    """
    return parse_space_name(tenant, url.removeprefix(CONTENT_SCHEME)) if url.startswith(CONTENT_SCHEME) else None


def is_registered_host(item: Item | None) -> bool:
    """Return whether a row says that a tenant has a host. That of a host that was removed stays."""
    return item is not None and "removed_at" not in item


def build_host_key(resources: Resources, tenant: str) -> ItemKey:
    """Return the key of the row of a tenant's host."""
    return ItemKey(resources.settings.settings_table, host_partition(tenant), HOST_SORT_KEY)


def host_partition(tenant: str) -> str:
    return f"t#{tenant}"
