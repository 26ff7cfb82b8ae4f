"""A tenant's host as the settings table remembers it: where it is, and what requests to it are signed with."""

from typing import Annotated, Any

from pydantic import BeforeValidator

from fermata.aws.dynamo import Item
from fermata.words.base import Word

SORT_KEY = "host"


class HostSecret(Word):
    """Sealed. It signs from `since` (epoch seconds) on, so that the host can be given it first."""

    id: str
    sealed: Annotated[bytes, BeforeValidator(bytes)]
    since: int
    created_at: str


class HostRecord(Word):
    """`secrets` are one, or after a rotation two, the newest last."""

    tenant: str
    url: str
    secrets: tuple[HostSecret, ...]
    version: int = 1
    created_at: str
    updated_at: str

    def signing(self, now: float) -> HostSecret:
        """The newest that counts already; the oldest where a clock is behind."""
        return next((secret for secret in reversed(self.secrets) if secret.since <= now), self.secrets[0])

    def item(self) -> Item:
        return {"pk": partition(self.tenant), "sk": SORT_KEY, "v": 1, **self.model_dump()}

    def shown(self) -> dict[str, Any]:
        """For an operator's eyes: the secrets are named and dated, never shown, sealed or open."""
        shown = self.model_dump(mode="json", by_alias=True, exclude={"secrets", "tenant"})
        return shown | {"secrets": [secret.model_dump(by_alias=True, exclude={"sealed"}) for secret in self.secrets]}


def partition(tenant: str) -> str:
    return f"t#{tenant}"
