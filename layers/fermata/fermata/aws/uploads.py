"""Accept uploads that are too large for one request, through presigned S3 URLs (decision 0110).

No state is kept about an upload. Its reference states the announced kind, size and digest and the expiry; its S3 key
`uploads/<tenant>/<user>/<reference>` names the owner. A reference of another caller therefore leads to another key,
and the object is checked against the reference whenever it is used. The key holds a digest of the user's name, because
URLs are logged.
"""

import base64
import hashlib
import re
from typing import Literal, get_args

from fermata.aws.resources import Resources
from fermata.domain.caller import Caller
from fermata.domain.errors import Conflict, Gone, InvalidRequest, NotFound, PayloadTooLarge
from fermata.domain.value_dataclass import value_dataclass

UploadKind = Literal["snapshot", "image", "audio", "agentFiles", "media"]
MAX_UPLOAD_BYTES: dict[UploadKind, int] = {
    "snapshot": 16 * 1024 * 1024,
    "image": 10_000_000,
    "audio": 10_000_000,
    "agentFiles": 16 * 1024 * 1024,
    "media": 100_000_000,
}
"""A snapshot of this size fits into the memory of every function that reads it (decision 0110). Media are what a space
keeps, also videos: only the function that stores them reads them (decision 0574)."""
UPLOAD_URL_SECONDS = 300
UPLOAD_TTL_SECONDS = 86_400
"""How long a reference can be used. The bucket's lifecycle rule deletes older uploads."""
MAX_UPLOAD_REF_CHARS = 120
UPLOAD_CONTENT_TYPES: dict[UploadKind, str] = {
    "snapshot": "application/json",
    "image": "application/octet-stream",
    "audio": "application/octet-stream",
    "agentFiles": "application/json",
    "media": "application/octet-stream",
}

_REF_PATTERN = re.compile(rf"({'|'.join(get_args(UploadKind))})-([1-9][0-9]{{0,8}})-([0-9a-f]{{64}})-([0-9]{{10,11}})")


@value_dataclass(frozen=True)
class Upload:
    """An announced upload: `size` bytes with the hex digest `sha256`, usable until `expires_at` (epoch seconds)."""

    kind: UploadKind
    size: int
    sha256: str
    expires_at: int

    @property
    def ref(self) -> str:
        """The reference by which request bodies name the upload; `parse_upload_ref` reads it."""
        return f"{self.kind}-{self.size}-{self.sha256}-{self.expires_at}"

    @property
    def signed_headers(self) -> dict[str, str]:
        """The headers that the presigned URL requires, so that S3 accepts only the announced content."""
        checksum = base64.b64encode(bytes.fromhex(self.sha256)).decode()
        return {
            "content-length": str(self.size),
            "content-type": UPLOAD_CONTENT_TYPES[self.kind],
            "if-none-match": "*",  # so that the URL stores one object, and no further versions of it (decision 0295)
            "x-amz-checksum-sha256": checksum,
        }

    @property
    def client_headers(self) -> dict[str, str]:
        """The headers a client has to set. Browsers set `content-length` themselves and let no script set it."""
        return {name: value for name, value in self.signed_headers.items() if name != "content-length"}


def announce_upload(resources: Resources, kind: UploadKind, size: int, sha256: str) -> Upload:
    """Describe an upload that expires in a day. Nothing is stored.

    Args:
        kind: What the content is used as; it sets the limit of `size`.
        size: The number of bytes that will be uploaded.
        sha256: Their digest, as 64 lower-case hex digits.

    Raises:
        PayloadTooLarge: `size` exceeds MAX_UPLOAD_BYTES.
    """
    if size > MAX_UPLOAD_BYTES[kind]:
        raise PayloadTooLarge(f"An upload of kind {kind} may have {MAX_UPLOAD_BYTES[kind]:,} bytes at most.")
    return Upload(kind, size, sha256, int(resources.clock.time()) + UPLOAD_TTL_SECONDS)


def presign_upload(resources: Resources, caller: Caller, upload: Upload) -> str:
    """Return a URL that accepts one PUT with the upload's headers within UPLOAD_URL_SECONDS. Makes no request.

    Args:
        caller: The owner; the URL's key is one that only this user's requests read.
        upload: The announced upload.
    """
    return resources.blobs.presign_put(_upload_key(caller, upload), upload.signed_headers, UPLOAD_URL_SECONDS)


def parse_upload_ref(ref: str, *kinds: UploadKind) -> Upload:
    """Parse a reference that `Upload.ref` produced.

    Args:
        ref: The reference.
        kinds: Those that are accepted.

    Raises:
        InvalidRequest: The text is no reference, or one to an upload of another kind.
    """
    match = _REF_PATTERN.fullmatch(ref)
    kind = next((one for one in kinds if match is not None and match[1] == one), None)
    if match is None or kind is None:
        raise InvalidRequest(
            f"This is no reference to an upload of kind {' or '.join(kinds)}. Use the 'ref' that POST uploads answered."
        )
    return Upload(kind, int(match[2]), match[3], int(match[4]))


def fetch_upload(resources: Resources, caller: Caller, upload: Upload) -> bytes:
    """Return the uploaded content, which is exactly what was announced.

    Args:
        caller: The user who uploaded it.
        upload: What the reference announces.

    Raises:
        PayloadTooLarge: The reference states more than MAX_UPLOAD_BYTES.
        Gone: The reference has expired.
        NotFound: The content was not uploaded, or not by this caller.
        Conflict: The content differs from what was announced.
    """
    if upload.size > MAX_UPLOAD_BYTES[upload.kind]:
        raise PayloadTooLarge(
            f"An upload of kind {upload.kind} may have {MAX_UPLOAD_BYTES[upload.kind]:,} bytes at most."
        )
    if upload.expires_at <= resources.clock.time():
        raise Gone("This upload is more than a day old and has expired. Upload it again.")
    blob = resources.blobs.open_stream(_upload_key(caller, upload))
    if blob is None:
        raise NotFound("Nothing was uploaded under this reference. PUT it to its 'url' first.")
    size, stream = blob
    body: bytes = stream.read() if size == upload.size else b""
    if hashlib.sha256(body).hexdigest() != upload.sha256:
        raise Conflict("The uploaded content differs from the announced content. Upload it again.")
    return body


def _upload_key(caller: Caller, upload: Upload) -> str:
    return f"{upload_folder(caller.tenant, caller.user)}/{upload.ref}"


def upload_folder(tenant: str, user: str) -> str:
    """Return the folder of a user's uploads. It names the user by a digest, because URLs are logged."""
    return f"uploads/{tenant}/{hashlib.sha256(user.encode()).hexdigest()[:32]}"
