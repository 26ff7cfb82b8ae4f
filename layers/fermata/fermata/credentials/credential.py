"""One provider key, sealed, as its row remembers it."""

import hashlib
import json
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator

from fermata.aws.dynamo import Item
from fermata.words.base import Word

AuthMode = Literal["apiKey", "baseUrl"]


class Credential(Word):
    """`version` counts the keys it has had; `key_id` is the KMS key that sealed the present one."""

    id: str
    tenant: str
    user: str
    provider_id: str
    auth_mode: AuthMode
    display_label: str
    base_url: str | None = None
    sealed: Annotated[bytes, BeforeValidator(bytes)]
    key_id: str
    version: int = 1
    created_at: str
    last_used_at: str | None = None

    def item(self) -> Item:
        row: Item = self.model_dump(exclude_none=True)
        return {"pk": f"t#{self.tenant}", "sk": sort_key(self.id), "v": 1, **row}

    def view(self, key_id: str) -> dict[str, Any]:
        """The contract's CredentialView. Nothing of the key leaves, not even its length."""
        return {
            "id": self.id,
            "providerId": self.provider_id,
            "authMode": self.auth_mode,
            "displayLabel": self.display_label,
            "baseUrl": self.base_url,
            "keyFingerprintCurrent": self.key_id == key_id,
            "createdAt": self.created_at,
            "lastUsedAt": self.last_used_at,
        }


def sort_key(credential_id: str) -> str:
    return f"credential#{credential_id}"


def label_key(user: str, provider_id: str, label: str) -> str:
    """The row that keeps (user, provider, label) from being there twice."""
    name = json.dumps([user, provider_id, label]).encode()
    return f"label#{hashlib.sha256(name).hexdigest()}"
