"""Snapshots in bodies, and uploaded snapshots that bodies refer to."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from fermata.aws.lazy_snapshot import SnapshotContent
from fermata.aws.resources import Resources
from fermata.aws.uploads import Upload
from fermata.domain.caller import Caller
from fermata.domain.errors import Gone, InvalidRequest, NotFound, PayloadTooLarge
from fermata.wire.bodies.find_snapshot import find_snapshot
from fermata.wire.bodies.turn_requests import ChatBody, ToolResultBody
from fermata.wire.http.json_memory import MAX_JSON_MEMORY_BYTES
from tests.peak_memory import measure_peak_megabytes
from tests.resources import TestClock
from tests.uploads import put_json_upload, put_upload

ADA = Caller(tenant="bakery", user="ada", capabilities=frozenset({"ai.chat"}))
FOLDER = "turns/bakery/t"


def make_chat_body(**members: Any) -> ChatBody:
    return ChatBody.model_validate({"conversationId": "c", "prompt": "x"} | members)


def fetch_snapshot(resources: Resources, body: Any) -> SnapshotContent:
    snapshot = find_snapshot(resources, ADA, body)
    assert snapshot is not None
    return snapshot.fetch()


def resolve_upload(resources: Resources, raw: bytes) -> Any:
    return fetch_snapshot(resources, make_chat_body(snapshotRef=put_upload(resources, ADA, "snapshot", raw))).value


def test_a_snapshot_in_the_body_is_returned_as_it_is(resources: Resources) -> None:
    assert fetch_snapshot(resources, make_chat_body(snapshot={"a": 1})) == ({"a": 1}, None)
    assert find_snapshot(resources, ADA, make_chat_body()) is None


def test_an_upload_is_identified_by_its_content_without_being_fetched(resources: Resources, clock: TestClock) -> None:
    bodies = []
    for raw in (b"{}", b"{}", b'{"a": 1}'):
        clock.advance(60)
        bodies.append(make_chat_body(snapshotRef=put_upload(resources, ADA, "snapshot", raw)))
    clock.advance(2 * 86_400)
    first, same, other = (find_snapshot(resources, ADA, body) for body in bodies)
    assert first is not None
    assert same is not None
    assert other is not None
    assert first.identity == same.identity != other.identity
    with pytest.raises(Gone):
        first.fetch()


@pytest.mark.parametrize("value", [{}, {"page": {"id": "p"}}, {"title": "🦀 ß"}, {"n": [1, 2.5, None, True]}])
def test_an_uploaded_snapshot_is_parsed_and_stored_as_uploaded(resources: Resources, value: Any) -> None:
    ref = put_json_upload(resources, ADA, value)
    result = {"ok": True}
    answer = ToolResultBody.model_validate({"bridgeId": "b", "requestId": "r", "result": result, "snapshotRef": ref})
    for body in (make_chat_body(snapshotRef=ref), answer):
        found, packed = fetch_snapshot(resources, body)
        assert found == value
        assert resources.blobs.get_json(resources.blobs.put_compressed_json(FOLDER, packed or found)) == value


def test_a_lone_surrogate_is_replaced_before_the_snapshot_is_stored(resources: Resources) -> None:
    found, packed = fetch_snapshot(
        resources, make_chat_body(snapshotRef=put_upload(resources, ADA, "snapshot", b'{"a": "\\ud83e"}'))
    )
    assert (found, packed) == ({"a": "�"}, None)


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        (b"{", "It is not JSON"),
        (b"\xff\xfe", "It is not UTF-8."),
        (b"[1]", "It must be a JSON object."),
        (b"null", "It must be a JSON object."),
        (b'{"a": NaN}', "NaN is not a number JSON can hold."),
        (b'{"a": 1, "a": 2}', "'a' is there twice."),
        (b'{"a":' * 300 + b"1" + b"}" * 300, "nested deeper than 200 levels"),
        (b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "nested deeper than 200 levels"),
    ],
)
def test_invalid_json_is_refused_with_a_reason(resources: Resources, raw: bytes, says: str) -> None:
    with pytest.raises(InvalidRequest, match="The uploaded snapshot cannot be used") as refused:
        resolve_upload(resources, raw)
    assert says in refused.value.message
    assert "request body" not in refused.value.message


def test_a_snapshot_that_needs_too_much_memory_is_refused_before_parsing(resources: Resources) -> None:
    parts = b'{"a": [' + b",".join([b"{}"] * 1_000_000) + b"]}"
    assert len(parts) < 4_000_000 < MAX_JSON_MEMORY_BYTES
    with pytest.raises(PayloadTooLarge, match="too many parts"):
        resolve_upload(resources, parts)


def test_a_snapshot_of_sixteen_megabytes_with_four_byte_characters_is_accepted(resources: Resources) -> None:
    site = {"files": [{"blob": "x" * 1_600_000} for _ in range(10)], "title": "🦀"}
    assert resolve_upload(resources, json.dumps(site, ensure_ascii=False).encode()) == site


@pytest.mark.exhaustive
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux tells how much memory was used")
@pytest.mark.parametrize(
    ("name", "value", "most"),
    [
        ("10 MB of assets", {"files": [{"blob": "A" * 1_000_000}] * 10}, 40),
        ("16 MB and one character of four bytes", {"files": [{"blob": "A" * 1_000_000}] * 16, "title": "🦀"}, 115),
        ("many rules", {"rules": {f"r{n}": {"id": f"r{n}", "color": f"var(--c-{n})"} for n in range(120_000)}}, 115),
    ],
)
def test_parsing_a_snapshot_fits_into_a_functions_memory(tmp_path: Path, name: str, value: Any, most: int) -> None:
    """The smallest function that does it has 208 MB, of which 80 are in use before."""
    raw = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    (tmp_path / "it").write_bytes(raw)
    upload = Upload("snapshot", len(raw), hashlib.sha256(raw).hexdigest(), 10**10)
    before = f"""
from types import SimpleNamespace
from fermata.wire.bodies.turn_requests import ChatBody
from fermata.wire.bodies.find_snapshot import find_snapshot
from fermata.domain.caller import Caller
blobs = SimpleNamespace(open_stream=lambda key: ({len(raw)}, open("it", "rb")))
resources = SimpleNamespace(blobs=blobs, clock=SimpleNamespace(time=lambda: 0))
caller = Caller(tenant="t", user="u", capabilities=frozenset())
body = ChatBody.model_validate({{"conversationId": "c", "prompt": "x", "snapshotRef": "{upload.ref}"}})
"""
    assert measure_peak_megabytes(before, "kept = find_snapshot(resources, caller, body).fetch()", tmp_path) < most, (
        name
    )


def test_an_upload_of_another_kind_is_refused(resources: Resources) -> None:
    with pytest.raises(InvalidRequest, match="of kind snapshot"):
        find_snapshot(resources, ADA, make_chat_body(snapshotRef=put_upload(resources, ADA, "image", b"{}")))
    foreign = make_chat_body(
        snapshotRef=put_upload(resources, ADA.model_copy(update={"user": "bob"}), "snapshot", b"{}")
    )
    with pytest.raises(NotFound):
        fetch_snapshot(resources, foreign)
