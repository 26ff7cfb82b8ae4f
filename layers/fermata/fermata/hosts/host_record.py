"""A tenant's host as the settings table remembers it: where it is, and what requests to it are signed with."""

from typing import Annotated, Any

from pydantic import BeforeValidator

from fermata.aws.dynamodb import Item
from fermata.domain.base import DomainModel

HOST_SORT_KEY = "host"


class HostSecret(DomainModel):
    """Sealed. It signs from `since` (epoch seconds) on, so that the host can be given it first."""

    id: str
    sealed: Annotated[bytes, BeforeValidator(bytes)]
    since: int
    created_at: str


class HostRecord(DomainModel):
    """`secrets` are one, or after a rotation two, the newest last."""

    tenant: str
    url: str
    secrets: tuple[HostSecret, ...]
    version: int = 1
    created_at: str
    updated_at: str

    def get_signing_secret(self, now: float) -> HostSecret:
        """The newest that counts already; the oldest where a clock is behind."""
        return next((secret for secret in reversed(self.secrets) if secret.since <= now), self.secrets[0])

    def to_item(self) -> Item:
        return {"pk": host_partition(self.tenant), "sk": HOST_SORT_KEY, "v": 1, **self.model_dump()}

    def to_operator_view(self) -> dict[str, Any]:
        """For an operator's eyes: the secrets are named and dated, never shown, sealed or open."""
        shown = self.model_dump(mode="json", by_alias=True, exclude={"secrets", "tenant"})
        return shown | {"secrets": [secret.model_dump(by_alias=True, exclude={"sealed"}) for secret in self.secrets]}


def host_partition(tenant: str) -> str:
    return f"t#{tenant}"
