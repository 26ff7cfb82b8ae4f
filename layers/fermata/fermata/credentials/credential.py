"""Define a credential: one API key or one server address of a provider, as its row stores it."""

import hashlib
import json
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator

from fermata.aws.dynamodb_items_and_writes import Item
from fermata.domain.base import StoredModel, StoredNames

AuthMode = Literal["apiKey", "baseUrl"]


def _to_bytes(value: Any) -> bytes | None:
    return None if value is None else bytes(value)


class Credential(
    StoredModel, alias_generator=StoredNames({"sealed_key": "sealed", "kms_key_id": "key_id"}), defer_build=False
):
    """One credential; its API key is encrypted.

    Attributes:
        base_url: The customer's own address, with `auth_mode` "baseUrl"; None for the provider's default.
        sealed_key: The encrypted key; None if the server at `base_url` needs none.
        kms_key_id: The KMS key that encrypted it.
        version: Counts the API keys and addresses the credential has had.
        revision: Counts all changes of the row, so that a copy of a write that lands late is refused (decision 0173).
    """

    id: str
    tenant: str
    user: str
    provider_id: str
    auth_mode: AuthMode
    display_label: str
    base_url: str | None = None
    sealed_key: Annotated[bytes | None, BeforeValidator(_to_bytes)] = None
    kms_key_id: str | None = None
    version: int = 1
    revision: int = 0
    created_at: str

    def to_row(self) -> Item:
        """Return the item of the settings table. It holds the API key only as KMS has sealed it."""
        row: Item = self.to_stored()
        return {"pk": f"t#{self.tenant}", "sk": credential_sort_key(self.id), "v": 1, **row}

    def is_current(self, key_id: str) -> bool:
        """Return whether its API key, if it has one, was encrypted with this KMS key, and so can be decrypted."""
        return self.kms_key_id in (None, key_id)

    def to_view(self, key_id: str, last_used_at: str | None) -> dict[str, Any]:
        """Return the wire form. It holds nothing of the API key, not even its length."""
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
    """Return the key of the row with what the credential's server last listed (`known_capabilities.py`)."""
    return f"listed#{credential_id}"


def credential_sort_key(credential_id: str) -> str:
    return f"credential#{credential_id}"


def label_sort_key(user: str, provider_id: str, label: str) -> str:
    """Return the sort key of the row that makes a label unique for each user and provider."""
    name = json.dumps([user, provider_id, label]).encode()
    return f"label#{hashlib.sha256(name).hexdigest()}"
