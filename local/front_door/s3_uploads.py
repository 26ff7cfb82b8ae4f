"""The bucket as a browser reaches it. On AWS a signed address leads straight to S3; here it leads through the front
door, at `/_bucket`, so that nothing but the service's own port is needed.

S3 lets in only what was signed, in time and unchanged. The emulator lets in anything, so that is checked here.
"""

import asyncio
import base64
import hashlib
import hmac
import time
from datetime import UTC, datetime
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, unquote

from botocore.auth import S3SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from local.aws_clients import get_client

BUCKET_PATH_PREFIX = "/_bucket"
MAX_UPLOAD_BYTES = 32 * 1024 * 1024
"""Far more than is ever signed for; S3 itself takes 5 GB."""
EMULATOR_SIGNING_KEY = "test"
"""The key that the emulator gives to functions."""
SIGNATURE_PARAMETER = "X-Amz-Signature"
CHECKSUM_HEADER = "x-amz-checksum-sha256"
CORS_HEADERS = {
    "access-control-allow-origin": "*",
    "access-control-allow-methods": "PUT",
    "access-control-allow-headers": f"content-type, {CHECKSUM_HEADER}",
    "access-control-max-age": "600",
}


class BucketResponse(NamedTuple):
    """An answer of the bucket's; a refusal says S3's code for it."""

    status: int
    headers: dict[str, str]
    body: bytes = b""


class S3Uploads:
    def __init__(self, endpoint: str) -> None:
        self._endpoint = endpoint

    def rewrite_signed_urls(self, body: bytes, host: str) -> bytes:
        """An answer of the service with its signed addresses, as they lead here."""
        return body.replace(f'"{self._endpoint}/'.encode(), f'"http://{host}{BUCKET_PATH_PREFIX}/'.encode())

    async def handle_upload(
        self, method: str, path: str, query: str, headers: dict[str, str], body: bytes
    ) -> BucketResponse:
        """What S3 would say to this. `path` as it came, encoded, without PREFIX."""
        if method == "OPTIONS":
            return BucketResponse(200, CORS_HEADERS)
        problem = None if method == "PUT" else "MethodNotAllowed"
        problem = problem or self._problem(path, query, headers, body)
        if problem:
            return _refused(problem)
        await asyncio.to_thread(self._put, unquote(path), headers, body)
        return BucketResponse(200, CORS_HEADERS)

    def _problem(self, path: str, query: str, headers: dict[str, str], body: bytes) -> str | None:
        given = dict(parse_qsl(query))
        if _is_late(given):
            return "AccessDenied"
        if not hmac.compare_digest(given.get(SIGNATURE_PARAMETER, ""), self._signature(path, query, headers)):
            return "SignatureDoesNotMatch"
        checksum = base64.b64encode(hashlib.sha256(body).digest()).decode()
        return None if headers.get(CHECKSUM_HEADER, checksum) == checksum else "BadDigest"

    def _signature(self, path: str, query: str, headers: dict[str, str]) -> str:
        """What the address would have been signed with, had it been made for these headers."""
        given = dict(parse_qsl(query))
        names = given.get("X-Amz-SignedHeaders", "").split(";")
        scope = given.get("X-Amz-Credential", "").split("/")
        if len(scope) != 5:
            return ""
        signed = {name: headers.get(name, "") for name in names} | {"host": self._endpoint.rpartition("/")[2]}
        rest = "&".join(part for part in query.split("&") if not part.startswith(f"{SIGNATURE_PARAMETER}="))
        request = AWSRequest("PUT", f"{self._endpoint}{path}?{rest}", headers=signed)
        request.context["timestamp"] = given.get("X-Amz-Date", "")
        signer: Any = S3SigV4QueryAuth(Credentials(scope[0], EMULATOR_SIGNING_KEY), scope[3], scope[2])
        wanted = signer.string_to_sign(request, signer.canonical_request(request))
        return str(signer.signature(wanted, request))

    def _put(self, path: str, headers: dict[str, str], body: bytes) -> None:
        bucket, _, key = path.removeprefix("/").partition("/")
        kind = headers.get("content-type", "binary/octet-stream")
        get_client("s3", self._endpoint).put_object(Bucket=bucket, Key=key, Body=body, ContentType=kind)


def _is_late(given: dict[str, str]) -> bool:
    try:
        made = datetime.strptime(given["X-Amz-Date"], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
        return time.time() > made.timestamp() + int(given["X-Amz-Expires"])
    except (KeyError, ValueError):
        return True


def _refused(code: str) -> BucketResponse:
    status = {"MethodNotAllowed": 405, "BadDigest": 400, "EntityTooLarge": 400}.get(code, 403)
    body = f'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>{code}</Code></Error>'
    return BucketResponse(status, CORS_HEADERS | {"content-type": "application/xml"}, body.encode())


ENTITY_TOO_LARGE = _refused("EntityTooLarge")
