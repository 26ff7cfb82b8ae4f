"""Sign requests to the local servers with the secret of this run, and verify signatures (decision 0230).

Whoever runs a local cloud makes an access key for it. boto3 signs with that key as for AWS. All other requests carry
the same kind of signature in a header of their own, because `Authorization` may hold a user's token. The signature is
AWS Signature Version 4. Standard library only, because the emulator runs in its own environment.
"""

import functools
import hashlib
import hmac
import os
import re
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Self
from urllib.parse import parse_qsl, quote

ALGORITHM = "AWS4-HMAC-SHA256"
UNSIGNED_PAYLOAD = "UNSIGNED-PAYLOAD"
CREDENTIALS_VARIABLE = "FERMATA_RUN_CREDENTIALS"
"""Environment variable that hands the key to the processes of a run."""
SIGNATURE_HEADER = "x-fermata-signature"
DATE_HEADER = "x-fermata-date"
RUN_SERVICE = "fermata"
REGION = "us-east-1"
MAX_SKEW_SECONDS = 300
"""How old a signature may be. All clocks are this machine's; what is slow is a busy process."""
MAX_PRESIGNED_SECONDS = 600
DATE_FORMAT = "%Y%m%dT%H%M%SZ"

_SIGNATURE = re.compile(
    r"AWS4-HMAC-SHA256 Credential=(\w+)/(\d{8})/([\w-]+)/([\w-]+)/aws4_request, *"
    r"SignedHeaders=([\w;-]+), *Signature=([0-9a-f]{64})",
    re.ASCII,
)
_CREDENTIAL = re.compile(r"(\w+)/(\d{8})/([\w-]+)/([\w-]+)/aws4_request", re.ASCII)
_DIGEST = re.compile(r"[0-9a-f]{64}")


class SignatureRefusedError(Exception):
    """A request has no valid signature of this run. The message says why."""


class SignatureMissingError(SignatureRefusedError):
    """It has none, or one that is too old."""


@dataclass(frozen=True)
class RunCredentials:
    """The access key of one run."""

    access_key_id: str
    secret_access_key: str

    @classmethod
    def generate(cls) -> Self:
        return cls(f"FERMATA{secrets.token_hex(8).upper()}", secrets.token_urlsafe(40))

    @classmethod
    def parse(cls, text: str) -> Self:
        access_key_id, _, secret_access_key = text.partition(":")
        if not (access_key_id and secret_access_key):
            raise ValueError(f"{CREDENTIALS_VARIABLE} must hold the access key of a run, as `id:secret`.")
        return cls(access_key_id, secret_access_key)

    def to_text(self) -> str:
        """Return what `parse` reads."""
        return f"{self.access_key_id}:{self.secret_access_key}"

    def __repr__(self) -> str:
        return f"RunCredentials({self.access_key_id!r})"


@functools.cache
def get_run_credentials() -> RunCredentials:
    """Get the access key of this run: the one that the parent process hands on, otherwise a new one."""
    handed_on = os.environ.get(CREDENTIALS_VARIABLE)
    return RunCredentials.parse(handed_on) if handed_on else RunCredentials.generate()


@dataclass(frozen=True)
class HttpRequest:
    """What a signature covers, as it was received."""

    method: str
    path: str
    """Percent-encoded, without the query."""
    query: str
    headers: Mapping[str, str]
    """By name in lower case; the values of a repeated one are joined by commas."""


@dataclass(frozen=True)
class Signature:
    access_key_id: str
    date: str
    """The day, for which the signing key is derived."""
    region: str
    service: str
    signed_headers: tuple[str, ...]
    digest: str
    timestamp: str
    expires_at: float

    def verify(self, request: HttpRequest, credentials: RunCredentials, payload_hash: str) -> None:
        """Compare the digest with that of the request.

        Raises:
            SignatureRefusedError
        """
        expected = self.compute(request, credentials.secret_access_key, payload_hash)
        if not hmac.compare_digest(expected, self.digest):
            raise SignatureRefusedError("The signature is not the one of this request with the key of this run.")

    def compute(self, request: HttpRequest, secret_access_key: str, payload_hash: str) -> str:
        path = request.path if self.service == "s3" else quote(request.path, safe="/~")
        headers = "".join(f"{name}:{' '.join(request.headers[name].split())}\n" for name in self.signed_headers)
        canonical = "\n".join(
            (
                request.method,
                path or "/",
                _canonical_query(request.query),
                headers,
                ";".join(self.signed_headers),
                payload_hash,
            )
        )
        scope = f"{self.date}/{self.region}/{self.service}/aws4_request"
        hashed = hashlib.sha256(canonical.encode()).hexdigest()
        text = f"{ALGORITHM}\n{self.timestamp}\n{scope}\n{hashed}"
        key = _derive_key(secret_access_key, self.date, self.region, self.service)
        return hmac.digest(key, text.encode(), "sha256").hex()


def read_signature(
    request: HttpRequest,
    credentials: RunCredentials,
    header: str = "authorization",
    date_header: str = "x-amz-date",
    *,
    now: Callable[[], float] = time.time,
) -> Signature:
    """Read the signature of a request, and check what needs no body: key, age, and which headers it covers.

    Raises:
        SignatureRefusedError
    """
    match = _SIGNATURE.fullmatch(request.headers.get(header, ""))
    if match is None:
        raise SignatureMissingError("The request is not signed.")
    access_key_id, date, region, service, names, digest = match.groups()
    timestamp = request.headers.get(date_header, "")
    signed_at, signed_headers = _parse_date(timestamp, date), tuple(names.split(";"))
    expires_at = signed_at + MAX_SKEW_SECONDS
    signature = Signature(access_key_id, date, region, service, signed_headers, digest, timestamp, expires_at)
    _check_claims(signature, request, credentials, ("host", date_header), signed_at, now())
    return signature


def read_presigned_signature(
    request: HttpRequest, credentials: RunCredentials, *, now: Callable[[], float] = time.time
) -> tuple[Signature, HttpRequest]:
    """Read the signature in the query of a presigned URL. Return it, and the request without it.

    Raises:
        SignatureRefusedError
    """
    parameters = dict(parse_qsl(request.query))
    match = _CREDENTIAL.fullmatch(parameters.get("X-Amz-Credential", ""))
    seconds = parameters.get("X-Amz-Expires", "")
    digest = parameters.get("X-Amz-Signature", "")
    is_complete = match is not None and _DIGEST.fullmatch(digest) and seconds.isascii() and seconds.isdecimal()
    if match is None or not is_complete or len(seconds) > 9:
        raise SignatureMissingError("The address is not signed.")
    access_key_id, date, region, service = match.groups()
    timestamp, names = parameters.get("X-Amz-Date", ""), parameters.get("X-Amz-SignedHeaders", "")
    signed_at, signed_headers = _parse_date(timestamp, date), tuple(names.split(";"))
    expires_at = signed_at + min(int(seconds), MAX_PRESIGNED_SECONDS)
    signature = Signature(access_key_id, date, region, service, signed_headers, digest, timestamp, expires_at)
    _check_claims(signature, request, credentials, ("host",), signed_at, now())
    unsigned_query = "&".join(part for part in request.query.split("&") if not part.startswith("X-Amz-Signature="))
    return signature, HttpRequest(request.method, request.path, unsigned_query, request.headers)


def sign_run_request(
    credentials: RunCredentials, method: str, host: str, target: str, *, now: Callable[[], float] = time.time
) -> dict[str, str]:
    """Return the headers that sign a request which is none to an AWS service. Its body is not covered.

    Args:
        target: path and query as they are sent.
    """
    timestamp = datetime.fromtimestamp(now(), UTC).strftime(DATE_FORMAT)
    path, _, query = target.partition("?")
    request = HttpRequest(method, path, query, {"host": host, DATE_HEADER: timestamp})
    names = ("host", DATE_HEADER)
    signature = Signature(
        credentials.access_key_id, timestamp[:8], REGION, RUN_SERVICE, names, "", timestamp, expires_at=0
    )
    digest = signature.compute(request, credentials.secret_access_key, UNSIGNED_PAYLOAD)
    scope = f"{credentials.access_key_id}/{timestamp[:8]}/{REGION}/{RUN_SERVICE}/aws4_request"
    value = f"{ALGORITHM} Credential={scope}, SignedHeaders={';'.join(names)}, Signature={digest}"
    return {SIGNATURE_HEADER: value, DATE_HEADER: timestamp}


def verify_run_request(
    request: HttpRequest, credentials: RunCredentials, *, now: Callable[[], float] = time.time
) -> None:
    """Verify what `sign_run_request` has signed.

    Raises:
        SignatureRefusedError
    """
    signature = read_signature(request, credentials, SIGNATURE_HEADER, DATE_HEADER, now=now)
    if signature.service != RUN_SERVICE:
        raise SignatureRefusedError("The signature is for another service.")
    signature.verify(request, credentials, UNSIGNED_PAYLOAD)


def _check_claims(
    signature: Signature,
    request: HttpRequest,
    credentials: RunCredentials,
    needed_headers: tuple[str, ...],
    signed_at: float,
    now: float,
) -> None:
    if not hmac.compare_digest(signature.access_key_id, credentials.access_key_id):
        raise SignatureRefusedError("The request is signed with a key that is not the one of this run.")
    if now > signature.expires_at or signed_at > now + MAX_SKEW_SECONDS:
        raise SignatureMissingError("The signature has expired, or is from another time.")
    signed = set(signature.signed_headers)
    is_for_aws = signature.service != RUN_SERVICE  # else another caller's headers may be passed on
    unsigned = [name for name in request.headers if name.startswith("x-amz-") and name not in signed]
    if (is_for_aws and unsigned) or not signed.issuperset(needed_headers) or not signed.issubset(request.headers):
        raise SignatureRefusedError("The signature does not cover the headers that it must cover.")


def _parse_date(timestamp: str, date: str) -> float:
    if not timestamp.startswith(date):
        raise SignatureRefusedError("The signature is for another day than its date.")
    return _parse_timestamp(timestamp)


@functools.lru_cache(maxsize=64)
def _parse_timestamp(timestamp: str) -> float:
    try:
        return datetime.strptime(timestamp, DATE_FORMAT).replace(tzinfo=UTC).timestamp()
    except ValueError:
        raise SignatureMissingError("The signature has no date.") from None


def _canonical_query(query: str) -> str:
    if not query:
        return ""
    pairs = sorted(part.partition("=")[::2] for part in query.replace("+", "%20").split("&"))
    return "&".join(f"{name}={value}" for name, value in pairs)


@functools.lru_cache(maxsize=64)
def _derive_key(secret_access_key: str, date: str, region: str, service: str) -> bytes:
    key = f"AWS4{secret_access_key}".encode()
    for part in (date, region, service, "aws4_request"):
        key = hmac.digest(key, part.encode(), "sha256")
    return key
