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

from fermata.aws.desk import Desk
from fermata.words.caller import Caller
from fermata.words.errors import Conflict, Gone, Invalid, NotFound, TooLarge

Kind = Literal["snapshot", "image"]
MOST_BYTES: dict[Kind, int] = {"snapshot": 16 * 1024 * 1024, "image": 10_000_000}
"""A snapshot of this size still fits into the memory of every function that reads it (docs/decisions/0110)."""
SIGNED_SECONDS = 300
KEPT_SECONDS = 86_400
"""How long a reference is good for. The bucket's lifecycle clears away what is older."""
LONGEST_REF = 120
MEDIA: dict[Kind, str] = {"snapshot": "application/json", "image": "application/octet-stream"}

_REF = re.compile(rf"({'|'.join(get_args(Kind))})-([1-9][0-9]{{0,8}})-([0-9a-f]{{64}})-([0-9]{{10,11}})")


@dataclass(frozen=True)
class Upload:
    """What was announced: so many bytes with this SHA-256 (hex), good until (epoch seconds)."""

    kind: Kind
    size: int
    sha256: str
    until: int

    @property
    def ref(self) -> str:
        return f"{self.kind}-{self.size}-{self.sha256}-{self.until}"

    @property
    def headers(self) -> dict[str, str]:
        """All of them are signed: S3 takes nothing but what was announced."""
        checksum = base64.b64encode(bytes.fromhex(self.sha256)).decode()
        return {
            "content-length": str(self.size),
            "content-type": MEDIA[self.kind],
            "x-amz-checksum-sha256": checksum,
        }

    @property
    def headers_to_send(self) -> dict[str, str]:
        """A browser says the length by itself, and lets nobody else say it."""
        return {name: value for name, value in self.headers.items() if name != "content-length"}


def announce(desk: Desk, kind: Kind, size: int, sha256: str) -> Upload:
    if size > MOST_BYTES[kind]:
        raise TooLarge(f"An upload of kind {kind} may have {MOST_BYTES[kind]:,} bytes at most.")
    return Upload(kind, size, sha256, int(desk.clock.time()) + KEPT_SECONDS)


def address(desk: Desk, caller: Caller, upload: Upload) -> str:
    """Where to PUT it, for SIGNED_SECONDS, with its headers."""
    return desk.blobs.address_for_put(_key(caller, upload), upload.headers, SIGNED_SECONDS)


def read_ref(ref: str, kind: Kind) -> Upload:
    found = _REF.fullmatch(ref)
    if found is None or found[1] != kind:
        raise Invalid(f"This is no reference to an upload of kind {kind}. Use the 'ref' that POST uploads answered.")
    return Upload(kind, int(found[2]), found[3], int(found[4]))


def fetch(desk: Desk, caller: Caller, upload: Upload) -> bytes:
    """Exactly what was announced. NotFound: not put, or not by this caller; Gone: too old; Conflict: something else."""
    if upload.size > MOST_BYTES[upload.kind]:
        raise TooLarge(f"An upload of kind {upload.kind} may have {MOST_BYTES[upload.kind]:,} bytes at most.")
    if upload.until <= desk.clock.time():
        raise Gone("This upload is more than a day old and no longer kept. Upload it again.")
    found = desk.blobs.find(_key(caller, upload))
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
