"""Accept uploads to pre-signed S3 URLs at the front door, under `/_bucket`, and check them as S3 does.

On AWS a pre-signed URL points to S3. Here it points to the front door, so that a browser needs only the service's own
port. The emulator does not check signatures, so the front door does.
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
"""More than the service ever signs for; S3 itself accepts 5 GB."""
EMULATOR_SIGNING_KEY = "test"
"""Secret access key that the emulator gives to all functions."""
SIGNATURE_PARAMETER = "X-Amz-Signature"
CHECKSUM_HEADER = "x-amz-checksum-sha256"
CORS_HEADERS = {
    "access-control-allow-origin": "*",
    "access-control-allow-methods": "PUT",
    "access-control-allow-headers": f"content-type, {CHECKSUM_HEADER}",
    "access-control-max-age": "600",
}


class BucketResponse(NamedTuple):
    """A response of S3. The body of an error holds S3's error code."""

    status: int
    headers: dict[str, str]
    body: bytes = b""


class S3Uploads:
    """Uploads to the emulator's S3 at `endpoint`."""

    def __init__(self, endpoint: str) -> None:
        self._endpoint = endpoint

    def rewrite_signed_urls(self, body: bytes, host: str) -> bytes:
        """Point the pre-signed URLs in a response body to the front door at `host`."""
        return body.replace(f'"{self._endpoint}/'.encode(), f'"http://{host}{BUCKET_PATH_PREFIX}/'.encode())

    async def handle_upload(
        self, method: str, path: str, query: str, headers: dict[str, str], body: bytes
    ) -> BucketResponse:
        """Store the object, or refuse the request as S3 would.

        Args:
            path: percent-encoded as received, without `BUCKET_PATH_PREFIX`.
        """
        if method == "OPTIONS":
            return BucketResponse(200, CORS_HEADERS)
        if method != "PUT":
            return _error_response("MethodNotAllowed")
        if error_code := self._find_error(path, query, headers, body):
            return _error_response(error_code)
        await asyncio.to_thread(self._put_object, unquote(path), headers, body)
        return BucketResponse(200, CORS_HEADERS)

    def _find_error(self, path: str, query: str, headers: dict[str, str], body: bytes) -> str | None:
        parameters = dict(parse_qsl(query))
        if _is_expired(parameters):
            return "AccessDenied"
        if not hmac.compare_digest(parameters.get(SIGNATURE_PARAMETER, ""), self._sign(path, query, headers)):
            return "SignatureDoesNotMatch"
        checksum = base64.b64encode(hashlib.sha256(body).digest()).decode()
        return None if headers.get(CHECKSUM_HEADER, checksum) == checksum else "BadDigest"

    def _sign(self, path: str, query: str, headers: dict[str, str]) -> str:
        """Compute the signature that the URL has if it was made for exactly these headers."""
        parameters = dict(parse_qsl(query))
        signed_names = parameters.get("X-Amz-SignedHeaders", "").split(";")
        credential_parts = parameters.get("X-Amz-Credential", "").split("/")
        if len(credential_parts) != 5:
            return ""
        access_key, _, region, service, _ = credential_parts
        signed_headers = {name: headers.get(name, "") for name in signed_names}
        signed_headers["host"] = self._endpoint.rpartition("/")[2]
        unsigned_query = "&".join(part for part in query.split("&") if not part.startswith(f"{SIGNATURE_PARAMETER}="))
        request = AWSRequest("PUT", f"{self._endpoint}{path}?{unsigned_query}", headers=signed_headers)
        request.context["timestamp"] = parameters.get("X-Amz-Date", "")
        signer: Any = S3SigV4QueryAuth(Credentials(access_key, EMULATOR_SIGNING_KEY), service, region)
        string_to_sign = signer.string_to_sign(request, signer.canonical_request(request))
        return str(signer.signature(string_to_sign, request))

    def _put_object(self, path: str, headers: dict[str, str], body: bytes) -> None:
        bucket, _, key = path.removeprefix("/").partition("/")
        content_type = headers.get("content-type", "binary/octet-stream")
        get_client("s3", self._endpoint).put_object(Bucket=bucket, Key=key, Body=body, ContentType=content_type)


def _is_expired(parameters: dict[str, str]) -> bool:
    try:
        signed_at = datetime.strptime(parameters["X-Amz-Date"], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
        return time.time() > signed_at.timestamp() + int(parameters["X-Amz-Expires"])
    except (KeyError, ValueError):
        return True


def _error_response(code: str) -> BucketResponse:
    status = {"MethodNotAllowed": 405, "BadDigest": 400, "EntityTooLarge": 400}.get(code, 403)
    body = f'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>{code}</Code></Error>'
    return BucketResponse(status, CORS_HEADERS | {"content-type": "application/xml"}, body.encode())


ENTITY_TOO_LARGE = _error_response("EntityTooLarge")
