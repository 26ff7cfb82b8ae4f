"""Accept uploads to pre-signed S3 URLs at the front door, under `/_bucket`, and check them as S3 does.

On AWS a pre-signed URL points to S3. Here it points to the front door, so that a browser needs only the service's own
port. The emulator accepts no requests of browsers, so the front door checks the signature and stores the object. Files
are downloaded in the same way: those of an export by programs only, media of content also by browsers that show them.
"""

import asyncio
import base64
import hashlib
from typing import NamedTuple
from urllib.parse import parse_qs, unquote

from botocore.exceptions import ClientError

from local.aws_clients import get_client
from local.request_signature import (
    UNSIGNED_PAYLOAD,
    HttpRequest,
    RunCredentials,
    SignatureMissingError,
    SignatureRefusedError,
    read_presigned_signature,
)

BUCKET_PATH_PREFIX = "/_bucket"
MAX_UPLOAD_BYTES = 100_000_000
"""More than the service ever signs for; S3 itself accepts 5 GB."""
UPLOADS_FOLDER = "uploads"
"""The only part of a bucket to which URLs are signed for PUT (aws/uploads.py)."""
EXPORTS_FOLDER = "exports"
"""The part of a bucket from which URLs of exports are signed for GET (privacy/export.py)."""
MEDIA_FOLDER = "content"
"""The part of a bucket from which URLs of media are signed for GET (content/media/asset_store.py)."""
_SHOWN_AS = frozenset({"image", "video", "document"})
"""As what a browser fetches media: as a part of a page, or by opening the address. No script of a page does."""
_MEDIA_HEADERS = {
    "accept-ranges": "bytes",
    "content-security-policy": "sandbox; default-src 'none'; style-src 'unsafe-inline'",
    "x-content-type-options": "nosniff",
}
"""S3 has an origin of its own. Here media have that of the console, which they may not use."""
CHECKSUM_HEADER = "x-amz-checksum-sha256"
ANY_ORIGIN = "*"
CORS_HEADERS = {
    "access-control-allow-methods": "PUT",
    "access-control-allow-headers": f"content-type, if-none-match, {CHECKSUM_HEADER}",
    "access-control-max-age": "600",
    "vary": "origin",
}
"""Those of the template's CORS rule, for pages of the origins that it allows."""
_STATUS_BY_ERROR = {
    "BadDigest": 400,
    "EntityTooLarge": 400,
    "InvalidRange": 416,
    "MethodNotAllowed": 405,
    "NoSuchKey": 404,
    "PreconditionFailed": 412,
}
"""Status codes of S3's errors; 403 of all others."""


class BucketResponse(NamedTuple):
    """A response of S3. The body of an error holds S3's error code."""

    status: int
    headers: dict[str, str]
    body: bytes = b""


class S3Uploads:
    """Uploads to the emulator's S3 at `endpoint`, whose URLs functions sign with the key of this run."""

    def __init__(self, endpoint: str, credentials: RunCredentials, origins: frozenset[str]) -> None:
        """
        Args:
            origins: whose pages may upload; `ANY_ORIGIN` among them allows all.
        """
        self._endpoint = endpoint
        self._credentials = credentials
        self._origins = origins

    def rewrite_signed_urls(self, body: bytes, host: str) -> bytes:
        """Point the pre-signed URLs in a response body to the front door at `host`."""
        return body.replace(f'"{self._endpoint}/'.encode(), f'"http://{host}{BUCKET_PATH_PREFIX}/'.encode())

    def rewrite_location(self, headers: list[tuple[bytes, bytes]], host: str) -> list[tuple[bytes, bytes]]:
        """Point a redirect to a pre-signed URL to the front door at `host`."""
        signed = f"{self._endpoint}/".encode()
        own = f"http://{host}{BUCKET_PATH_PREFIX}/".encode()
        return [
            (
                name,
                own + value.removeprefix(signed) if name.lower() == b"location" and value.startswith(signed) else value,
            )
            for name, value in headers
        ]

    async def handle_upload(
        self, method: str, path: str, query: str, headers: dict[str, str], body: bytes
    ) -> BucketResponse:
        """Store the object, or refuse the request as S3 would.

        Args:
            path: percent-encoded as received, without `BUCKET_PATH_PREFIX`.
        """
        origin = headers.get("origin", "")
        is_own_page = origin == f"http://{headers.get('host', '')}"  # a name of the front door (decision 0231)
        if origin and not is_own_page and not self._is_allowed(origin):
            return _error_response("AccessForbidden")
        return self._share(await self._handle_allowed_upload(method, path, query, headers, body), origin)

    def refuse_oversized_upload(self, headers: dict[str, str]) -> BucketResponse:
        return self._share(_error_response("EntityTooLarge"), headers.get("origin", ""))

    def _is_allowed(self, origin: str) -> bool:
        return bool(self._origins & {origin, ANY_ORIGIN})

    def _share(self, response: BucketResponse, origin: str) -> BucketResponse:
        """Let the page of an allowed origin read a response."""
        if not (origin and self._is_allowed(origin)):
            return response
        return response._replace(headers=response.headers | CORS_HEADERS | {"access-control-allow-origin": origin})

    async def _handle_allowed_upload(
        self, method: str, path: str, query: str, headers: dict[str, str], body: bytes
    ) -> BucketResponse:
        if method == "OPTIONS":
            return BucketResponse(200, {})
        if method == "GET":
            return await self._handle_download(path, query, headers)
        if method != "PUT":
            return _error_response("MethodNotAllowed")
        if error_code := self._find_error(path, query, headers, body):
            return _error_response(error_code)
        return await asyncio.to_thread(self._put_object, unquote(path), headers, body)

    async def _handle_download(self, path: str, query: str, headers: dict[str, str]) -> BucketResponse:
        """Respond with a file to a program, or with media to a page that shows it: no rule lets a page read one."""
        is_media = _is_inside(MEDIA_FOLDER, unquote(path))
        is_shown = is_media and headers.get("sec-fetch-dest") in _SHOWN_AS
        if "origin" in headers or ("sec-fetch-site" in headers and not is_shown):
            return _error_response("AccessForbidden")
        error_code = self._find_signature_error("GET", path, query, headers)
        if error_code or not (is_media or _is_inside(EXPORTS_FOLDER, unquote(path))):
            return _error_response(error_code or "AccessDenied")
        disposition = "".join(parse_qs(query).get("response-content-disposition", []))
        return await asyncio.to_thread(self._get_object, unquote(path), headers.get("range", ""), disposition)

    def _find_signature_error(self, method: str, path: str, query: str, headers: dict[str, str]) -> str | None:
        request = HttpRequest(method, path, query, headers | {"host": self._endpoint.rpartition("/")[2]})
        try:
            signature, unsigned_request = read_presigned_signature(request, self._credentials)
            signature.verify(unsigned_request, self._credentials, UNSIGNED_PAYLOAD)
        except SignatureMissingError:
            return "AccessDenied"
        except SignatureRefusedError:
            return "SignatureDoesNotMatch"
        return None

    def _find_error(self, path: str, query: str, headers: dict[str, str], body: bytes) -> str | None:
        if error_code := self._find_signature_error("PUT", path, query, headers):
            return error_code
        if not _is_inside(UPLOADS_FOLDER, unquote(path)):
            return "AccessDenied"
        checksum = base64.b64encode(hashlib.sha256(body).digest()).decode()
        return None if headers.get(CHECKSUM_HEADER, checksum) == checksum else "BadDigest"

    def _put_object(self, path: str, headers: dict[str, str], body: bytes) -> BucketResponse:
        bucket, _, key = path.removeprefix("/").partition("/")
        content_type = headers.get("content-type", "binary/octet-stream")
        parameters: dict[str, str] = {"IfNoneMatch": "*"} if headers.get("if-none-match") == "*" else {}
        try:
            get_client("s3", self._endpoint).put_object(
                Bucket=bucket, Key=key, Body=body, ContentType=content_type, **parameters
            )
        except ClientError as error:
            if error.response["Error"]["Code"] != "PreconditionFailed":
                raise
            return _error_response("PreconditionFailed")
        return BucketResponse(200, {})

    def _get_object(self, path: str, wanted_range: str, disposition: str) -> BucketResponse:
        bucket, _, key = path.removeprefix("/").partition("/")
        part: dict[str, str] = {"Range": wanted_range} if wanted_range else {}
        try:
            found = get_client("s3", self._endpoint).get_object(Bucket=bucket, Key=key, **part)
        except ClientError as error:
            code = error.response["Error"]["Code"]
            return _error_response(code if code == "InvalidRange" else "NoSuchKey")
        headers = {"content-type": found["ContentType"], **_MEDIA_HEADERS}
        if disposition:
            headers["content-disposition"] = disposition
        if "ContentRange" in found:
            headers["content-range"] = found["ContentRange"]
        return BucketResponse(206 if "ContentRange" in found else 200, headers, found["Body"].read())


def _is_inside(wanted_folder: str, path: str) -> bool:
    """Return whether a path leads to an object in this folder of a bucket."""
    folder, *names = path.split("/")[2:] or [""]
    return folder == wanted_folder and bool(names) and not {"", ".", ".."} & set(names)


def _error_response(code: str) -> BucketResponse:
    status = _STATUS_BY_ERROR.get(code, 403)
    body = f'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>{code}</Code></Error>'
    return BucketResponse(status, {"content-type": "application/xml"}, body.encode())
