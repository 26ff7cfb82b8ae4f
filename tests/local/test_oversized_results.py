"""A tool result that is larger than the gateway takes is shortened, so that the model does not wait for it."""

import json
from typing import Any

import pytest

from local.front_door.oversized_results import (
    PICTURES_OMITTED,
    RESULT_OMITTED,
    RESULT_PATH,
    is_result_of_browser,
    shorten_result,
)

IDS = {"bridgeId": "b", "requestId": "r"}
PICTURE = {"mimeType": "image/png", "data": "A" * 100}


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        ({"ok": True, "images": [PICTURE]}, {"ok": True, "data": {"result": None, "note": PICTURES_OMITTED}}),
        ({"ok": True, "data": {"a": 1}}, {"ok": True, "data": {"a": 1, "note": PICTURES_OMITTED}}),
        ({"ok": True, "data": [1]}, {"ok": True, "data": {"result": [1], "note": PICTURES_OMITTED}}),
        ({"ok": False, "error": "No node x."}, {"ok": False, "error": "No node x."}),
        ({"ok": True, "data": "x" * 5_000_000}, {"ok": False, "error": RESULT_OMITTED}),
    ],
    ids=["a picture", "an edit of a large page", "a list", "a failure", "a large text"],
)
def test_pictures_and_snapshot_are_left_out_and_the_model_is_told(result: Any, expected: Any) -> None:
    body = json.dumps(IDS | {"result": result, "snapshot": {"page": "p"}}).encode()
    shortened = shorten_result(body)
    assert shortened is not None
    assert json.loads(shortened) == IDS | {"result": expected}


@pytest.mark.parametrize("body", [b"{", b"[]", b'{"result": {}}', b'{"bridgeId": "b", "requestId": "r"}', b"\xff"])
def test_what_is_no_result_is_refused(body: bytes) -> None:
    assert shorten_result(body) is None


@pytest.mark.parametrize(
    ("path", "headers", "expected"),
    [
        (RESULT_PATH, [(b"cookie", b"a=b")], True),
        (RESULT_PATH, [(b"cookie", b"a=b"), (b"authorization", b"Bearer x")], False),
        (RESULT_PATH, [], False),
        ("/admin/api/ai/chat/site", [(b"cookie", b"a=b")], False),
    ],
)
def test_only_results_of_browsers_are_shortened(path: str, headers: list[tuple[bytes, bytes]], expected: bool) -> None:
    assert is_result_of_browser({"method": "POST", "path": path, "headers": headers}) is expected
