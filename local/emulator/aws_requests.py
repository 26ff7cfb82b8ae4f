"""Read from a request which AWS operation it asks for."""

import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote_to_bytes

CREDENTIAL_SCOPE = re.compile(rb"Credential=[^/]+/\d+/[^/]+/([^/]+)/aws4_request")
FORM_ACTION = re.compile(rb"(?:^|&)Action=(\w+)")
READ_PREFIXES = ("Get", "BatchGet", "TransactGet", "Query", "Scan", "Search", "Describe", "List")


@dataclass
class AwsRequest:
    """Service and operation of a request. The service is empty when the request is not signed for one."""

    service: str
    operation: str
    """From a header or the path; of S3 and other REST services, the method."""
    method: str
    path: str
    query: str

    @classmethod
    def from_scope(cls, scope: Any) -> "AwsRequest":
        headers = dict(scope["headers"])
        signed = CREDENTIAL_SCOPE.search(headers.get(b"authorization", b"")) or CREDENTIAL_SCOPE.search(
            unquote_to_bytes(scope["query_string"])
        )
        operation = headers.get(b"x-amz-target", b"").decode("latin-1").rpartition(".")[2]
        if "/operation/" in scope["path"]:
            operation = scope["path"].rpartition("/")[2]
        service = signed[1].decode() if signed else ""
        query = scope["query_string"].decode("latin-1")
        return cls(service, operation or scope["method"], scope["method"], scope["path"], query)

    def note_body(self, chunk: bytes) -> None:
        """Take the operation from a form, which is how the oldest services name it."""
        if self.operation == "POST" and (action := FORM_ACTION.search(chunk)):
            self.operation = action[1].decode()

    @property
    def is_read(self) -> bool:
        return self.method in ("GET", "HEAD") or self.operation.startswith(READ_PREFIXES)
