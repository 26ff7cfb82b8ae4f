"""The way in for what one request cannot take: an address in the bucket, good for minutes and for one thing only.

Nothing is remembered about an upload. Its reference says what was announced and until when it is good; where it lies
says whose it is. So another caller's reference leads nowhere, and what lies there is checked against the reference
when it is used, whoever let it in.

Key: `uploads/<tenant>/<user>/<reference>`; the user's name goes in as a digest, because addresses are logged.
"""

import base64
import hashlib
import re
from dataclasses import dataclass
from typing import Literal, get_args

from fermata.aws.resources import Resources
from fermata.domain.caller import Caller
from fermata.domain.errors import Conflict, Gone, InvalidRequest, NotFound, PayloadTooLarge

UploadKind = Literal["snapshot", "image"]
MAX_UPLOAD_BYTES: dict[UploadKind, int] = {"snapshot": 16 * 1024 * 1024, "image": 10_000_000}
"""A snapshot of this size still fits into the memory of every function that reads it (docs/decisions/0110)."""
UPLOAD_URL_SECONDS = 300
UPLOAD_TTL_SECONDS = 86_400
"""How long a reference is good for. The bucket's lifecycle clears away what is older."""
MAX_UPLOAD_REF_CHARS = 120
UPLOAD_CONTENT_TYPES: dict[UploadKind, str] = {"snapshot": "application/json", "image": "application/octet-stream"}

_REF = re.compile(rf"({'|'.join(get_args(UploadKind))})-([1-9][0-9]{{0,8}})-([0-9a-f]{{64}})-([0-9]{{10,11}})")


@dataclass(frozen=True)
class Upload:
    """What was announced: so many bytes with this SHA-256 (hex), good until (epoch seconds)."""

    kind: UploadKind
    size: int
    sha256: str
    expires_at: int

    @property
    def ref(self) -> str:
        return f"{self.kind}-{self.size}-{self.sha256}-{self.expires_at}"

    @property
    def signed_headers(self) -> dict[str, str]:
        """All of them are signed: S3 takes nothing but what was announced."""
        checksum = base64.b64encode(bytes.fromhex(self.sha256)).decode()
        return {
            "content-length": str(self.size),
            "content-type": UPLOAD_CONTENT_TYPES[self.kind],
            "x-amz-checksum-sha256": checksum,
        }

    @property
    def client_headers(self) -> dict[str, str]:
        """A browser says the length by itself, and lets nobody else say it."""
        return {name: value for name, value in self.signed_headers.items() if name != "content-length"}


def announce_upload(resources: Resources, kind: UploadKind, size: int, sha256: str) -> Upload:
    if size > MAX_UPLOAD_BYTES[kind]:
        raise PayloadTooLarge(f"An upload of kind {kind} may have {MAX_UPLOAD_BYTES[kind]:,} bytes at most.")
    return Upload(kind, size, sha256, int(resources.clock.time()) + UPLOAD_TTL_SECONDS)


def presign_upload(resources: Resources, caller: Caller, upload: Upload) -> str:
    """Where to PUT it, for SIGNED_SECONDS, with its headers."""
    return resources.blobs.presign_put(_key(caller, upload), upload.signed_headers, UPLOAD_URL_SECONDS)


def parse_upload_ref(ref: str, kind: UploadKind) -> Upload:
    found = _REF.fullmatch(ref)
    if found is None or found[1] != kind:
        raise InvalidRequest(
            f"This is no reference to an upload of kind {kind}. Use the 'ref' that POST uploads answered."
        )
    return Upload(kind, int(found[2]), found[3], int(found[4]))


def fetch_upload(resources: Resources, caller: Caller, upload: Upload) -> bytes:
    """Exactly what was announced. NotFound: not put, or not by this caller; Gone: too old; Conflict: something else."""
    if upload.size > MAX_UPLOAD_BYTES[upload.kind]:
        raise PayloadTooLarge(
            f"An upload of kind {upload.kind} may have {MAX_UPLOAD_BYTES[upload.kind]:,} bytes at most."
        )
    if upload.expires_at <= resources.clock.time():
        raise Gone("This upload is more than a day old and no longer kept. Upload it again.")
    found = resources.blobs.open_stream(_key(caller, upload))
    if found is None:
        raise NotFound("Nothing was uploaded under this reference. PUT it to its 'url' first.")
    size, stream = found
    body: bytes = stream.read() if size == upload.size else b""
    if hashlib.sha256(body).hexdigest() != upload.sha256:
        raise Conflict("What was uploaded is not what was announced. Upload it again.")
    return body


def _key(caller: Caller, upload: Upload) -> str:
    user = hashlib.sha256(caller.user.encode()).hexdigest()[:32]
    return f"uploads/{caller.tenant}/{user}/{upload.ref}"
