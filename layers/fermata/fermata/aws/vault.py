"""Secrets sealed with KMS and bound to what they are for, whose they are and which row holds them."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

from botocore.exceptions import ClientError

if TYPE_CHECKING:
    from types_boto3_kms import KMSClient

SecretPurpose = Literal["provider-key", "caller-secret", "host-secret"]
SECRET_CACHE_SECONDS = 300
UNDECRYPTABLE_ERROR_CODES = {
    "DisabledException",
    "IncorrectKeyException",
    "InvalidCiphertextException",
    "KMSInvalidStateException",
    "NotFoundException",
}


class SecretUndecryptable(Exception):
    """Sealed under another key, for something else, or under a key that is switched off: the secret is lost to us."""


class Vault:
    """Opening the same sealed bytes again within five minutes asks KMS nothing."""

    def __init__(self, client: "KMSClient", key_id: str, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._client = client
        self._key_id = key_id
        self._monotonic = monotonic
        self._opened: dict[tuple[bytes, str, str, str], tuple[float, str]] = {}

    def seal_secret(self, secret: str, *, purpose: SecretPurpose, tenant: str, name: str) -> bytes:
        """At most 4,096 bytes of secret (KMS's own limit)."""
        context = {"purpose": purpose, "tenant": tenant, "id": name}
        sealed = self._client.encrypt(KeyId=self._key_id, Plaintext=secret.encode(), EncryptionContext=context)
        return bytes(sealed["CiphertextBlob"])

    def open_secret(self, sealed: bytes, *, purpose: SecretPurpose, tenant: str, name: str) -> str:
        """Raises CannotOpen when the bytes were sealed for anything else or their key is gone."""
        key = (sealed, purpose, tenant, name)
        now = self._monotonic()
        if key in self._opened and self._opened[key][0] > now:
            return self._opened[key][1]
        secret = self._decrypt(sealed, {"purpose": purpose, "tenant": tenant, "id": name})
        self._opened = {held: value for held, value in self._opened.items() if value[0] > now}
        self._opened[key] = (now + SECRET_CACHE_SECONDS, secret)
        return secret

    def _decrypt(self, sealed: bytes, context: dict[str, str]) -> str:
        try:
            opened = self._client.decrypt(KeyId=self._key_id, CiphertextBlob=sealed, EncryptionContext=context)
        except ClientError as error:
            if error.response.get("Error", {}).get("Code") in UNDECRYPTABLE_ERROR_CODES:
                raise SecretUndecryptable(
                    f"The secret {context['id']!r} cannot be opened with {self._key_id}."
                ) from error
            raise
        return opened["Plaintext"].decode()
