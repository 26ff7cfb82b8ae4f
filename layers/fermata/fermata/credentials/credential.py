"""One way to a provider, its key sealed, as its row remembers it."""

import hashlib
import json
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator

from fermata.aws.dynamodb import Item
from fermata.domain.base import DomainModel

AuthMode = Literal["apiKey", "baseUrl"]


def _bytes(value: Any) -> bytes | None:
    return None if value is None else bytes(value)


class Credential(DomainModel):
    """`version` counts the keys and addresses it has had; `key_id` is the KMS key that sealed the present one.

    One with an address of its own may do without a key; `sealed` and `key_id` are then None.
    """

    id: str
    tenant: str
    user: str
    provider_id: str
    auth_mode: AuthMode
    display_label: str
    base_url: str | None = None
    sealed: Annotated[bytes | None, BeforeValidator(_bytes)] = None
    key_id: str | None = None
    version: int = 1
    created_at: str

    def to_row(self) -> Item:
        row: Item = self.model_dump(exclude_none=True)
        return {"pk": f"t#{self.tenant}", "sk": credential_sort_key(self.id), "v": 1, **row}

    def is_current(self, key_id: str) -> bool:
        """Whether its key, if it has one, was sealed with the deployment's KMS key and so can be opened."""
        return self.key_id in (None, key_id)

    def to_view(self, key_id: str, last_used_at: str | None) -> dict[str, Any]:
        """The contract's CredentialView. Nothing of the key leaves, not even its length."""
        return {
            "id": self.id,
            "providerId": self.provider_id,
            "authMode": self.auth_mode,
            "displayLabel": self.display_label,
            "baseUrl": self.base_url,
            "keyFingerprintCurrent": self.is_current(key_id),
            "createdAt": self.created_at,
            "lastUsedAt": last_used_at,
        }


def model_list_sort_key(credential_id: str) -> str:
    """Of what its server last listed (abilities.py)."""
    return f"listed#{credential_id}"


def credential_sort_key(credential_id: str) -> str:
    return f"credential#{credential_id}"


def label_sort_key(user: str, provider_id: str, label: str) -> str:
    """The row that keeps (user, provider, label) from being there twice."""
    name = json.dumps([user, provider_id, label]).encode()
    return f"label#{hashlib.sha256(name).hexdigest()}"
