"""Encrypt secrets with KMS, bound to their purpose, their tenant and the id of their row."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

from botocore.exceptions import ClientError

if TYPE_CHECKING:
    from types_boto3_kms import KMSClient

SecretPurpose = Literal[
    "provider-key",
    "caller-secret",
    "host-secret",
    "tool-secret",
    "caller-authorization",
    "captcha-secret",
    "git-password",
]
SECRET_CACHE_SECONDS = 300
_UNDECRYPTABLE_CODES = {
    "DisabledException",
    "IncorrectKeyException",
    "InvalidCiphertextException",
    "KMSInvalidStateException",
    "NotFoundException",
}


class SecretUndecryptable(Exception):
    """KMS cannot decrypt the secret: it was sealed with another key or context, or the key is disabled."""


class Vault:
    """Seals and opens secrets. An opened secret is cached in the process for five minutes."""

    def __init__(self, client: "KMSClient", key_id: str, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._client = client
        self._key_id = key_id
        self._monotonic = monotonic
        self._opened: dict[tuple[bytes, str, str, str], tuple[float, str]] = {}

    def seal_secret(self, secret: str, *, purpose: SecretPurpose, tenant: str, name: str) -> bytes:
        """Encrypt a secret of at most 4,096 bytes, which is the limit of KMS.

        Args:
            name: The id of the row that will hold the sealed bytes.
        """
        context = {"purpose": purpose, "tenant": tenant, "id": name}
        sealed = self._client.encrypt(KeyId=self._key_id, Plaintext=secret.encode(), EncryptionContext=context)
        return bytes(sealed["CiphertextBlob"])

    def open_secret(self, sealed: bytes, *, purpose: SecretPurpose, tenant: str, name: str) -> str:
        """Decrypt a secret that was sealed with the same purpose, tenant and name; cache it for SECRET_CACHE_SECONDS.

        Args:
            sealed: The bytes that `seal_secret` returned.
            purpose: What the secret is used for.
            tenant: The tenant that owns it.
            name: The id of the row that stores the sealed bytes.

        Raises:
            SecretUndecryptable: It was sealed with other values, or its KMS key is gone or disabled.
        """
        key = (sealed, purpose, tenant, name)
        now = self._monotonic()
        if key in self._opened and self._opened[key][0] > now:
            return self._opened[key][1]
        secret = self._decrypt(sealed, {"purpose": purpose, "tenant": tenant, "id": name})
        self._opened = {other: entry for other, entry in self._opened.items() if entry[0] > now}
        self._opened[key] = (now + SECRET_CACHE_SECONDS, secret)
        return secret

    def _decrypt(self, sealed: bytes, context: dict[str, str]) -> str:
        try:
            opened = self._client.decrypt(KeyId=self._key_id, CiphertextBlob=sealed, EncryptionContext=context)
        except ClientError as error:
            if error.response.get("Error", {}).get("Code") in _UNDECRYPTABLE_CODES:
                raise SecretUndecryptable(
                    f"The secret {context['id']!r} cannot be opened with {self._key_id}."
                ) from error
            raise
        return opened["Plaintext"].decode()
