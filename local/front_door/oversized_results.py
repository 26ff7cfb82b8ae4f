"""Shorten tool results of browsers that are larger than API Gateway takes, as the proxy of a CMS does (decision 0215).

The gateway refuses such a request before any function sees it, and the model would wait until the call times out.
A browser signs in with a cookie. Programs send an Authorization header; they get the 413 and shorten the result
themselves.
"""

import json
from typing import Any

from local.front_door.asgi import Scope, find_header

RESULT_PATH = "/admin/api/ai/tool-result"
MAX_SHORTENED_BYTES = 4 * 1024 * 1024
PICTURES_OMITTED = (
    "The call was carried out in the editor, but its pictures and the page together are larger than 4.5 MB, so they "
    "were left out. Go on without the pictures, or capture a smaller part."
)
RESULT_OMITTED = (
    "The call was carried out in the editor, but its result is larger than 4.5 MB and could not be sent. Do not repeat "
    "an edit. Read a smaller part."
)


def is_result_of_browser(scope: Scope) -> bool:
    """Return whether a request posts a tool result and is authenticated by a cookie."""
    is_result = scope["method"] == "POST" and scope["path"] == RESULT_PATH
    return is_result and bool(
        find_header(scope["headers"], b"cookie") and not find_header(scope["headers"], b"authorization")
    )


def shorten_result(body: bytes) -> bytes | None:
    """Return the result without its pictures and snapshot, with a note to the model; None if the body is no result.

    `ok` stays as it is where possible: an edit that was made must not be reported as failed.
    """
    try:
        posted = json.loads(body)
        result: dict[str, Any] = dict(posted["result"])
        ids = {name: posted[name] for name in ("bridgeId", "requestId")}
    except (ValueError, KeyError, TypeError):
        return None
    if result.pop("images", None) or result.get("ok") is True:
        data = result.get("data")
        result["data"] = {**(data if isinstance(data, dict) else {"result": data}), "note": PICTURES_OMITTED}
    shortened = json.dumps(ids | {"result": result}).encode()
    if len(shortened) > MAX_SHORTENED_BYTES:
        shortened = json.dumps(ids | {"result": {"ok": False, "error": RESULT_OMITTED}}).encode()
    return shortened
