"""KMS in memory: it seals nothing, but opens only under the same encryption context."""

import json
from typing import Any

from tests.chaos.memory_aws.errors import aws_error


class MemoryKms:
    def encrypt(self, *, KeyId: str, Plaintext: bytes, EncryptionContext: dict[str, str]) -> dict[str, Any]:
        sealed = {"key": KeyId, "context": EncryptionContext, "text": Plaintext.decode()}
        return {"CiphertextBlob": json.dumps(sealed, sort_keys=True).encode()}

    def decrypt(self, *, KeyId: str, CiphertextBlob: bytes, EncryptionContext: dict[str, str]) -> dict[str, Any]:
        sealed = json.loads(bytes(CiphertextBlob))
        if sealed["key"] != KeyId or sealed["context"] != EncryptionContext:
            raise aws_error("InvalidCiphertextException", "Decrypt")
        return {"Plaintext": sealed["text"].encode()}
