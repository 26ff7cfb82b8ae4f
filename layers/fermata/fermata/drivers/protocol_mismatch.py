"""Recognise a server that stands under a provider's name and does not speak its protocol (decision 0213)."""

import re
from collections.abc import Mapping

from fermata.domain.errors import ProviderError
from fermata.drivers.adjustments import Adjustment, RefusingServer

USE_FALLBACK = Adjustment("use the fallback protocol", r"$^")
"""Remembered for a server that answers only to the fallback protocol. No refusal matches it by words alone."""
_NO_SUCH_PATH_STATUSES = (404, 405, 501)
_MISSING_MODEL = re.compile(r"model\b.{0,300}(?:not found|not exist)|\bpull", re.IGNORECASE | re.DOTALL)
_UNKNOWN_PATH = re.compile(r"unexpected endpoint", re.IGNORECASE)
"""What a server says that answers every path with 200."""
_FOREIGN_MEDIA_TYPES = ("text/event-stream", "text/html")


def is_unknown_path(error: ProviderError) -> bool:
    """Return whether the server does not know the path. That it does not know the model is something else."""
    said = f"{error.detail} {error.message}"
    if _UNKNOWN_PATH.search(said):
        return True
    return error.status in _NO_SUCH_PATH_STATUSES and not _MISSING_MODEL.search(said)


def is_foreign_stream(status: int, headers: Mapping[str, str]) -> bool:
    """Return whether a server that should stream NDJSON streams events of another protocol, or shows a web page."""
    media_type = headers.get("content-type", "").partition(";")[0].strip().lower()
    return status == 200 and media_type in _FOREIGN_MEDIA_TYPES


def build_server_key(provider: str, base_url: str) -> RefusingServer:
    """Return what the protocol of a server is remembered for: the server, whatever the model or key."""
    return RefusingServer(provider, base_url, model="", key_hash=0)
