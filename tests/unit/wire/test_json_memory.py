"""Memory of request bodies: what the largest ones take at every door, and that more is refused before it is parsed."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fermata.domain.errors import PayloadTooLarge
from fermata.wire.http.json_body import MAX_REQUEST_BYTES, parse_json_body, parse_json_object
from fermata.wire.http.json_memory import MAX_JSON_MEMORY_BYTES, estimate_json_memory, fits_into_memory
from tests.peak_memory import PeakMeasurer, open_peak_measurer

CRAB = "\U0001f980"
FREE_MEGABYTES = 112
"""The smallest function has 192 MB, of which its packages take 80 before a request."""
MakeValue = Callable[[int], Any]
SHAPES: dict[str, MakeValue] = {
    "one text": lambda size: "x" * size,
    "one text and one emoji": lambda size: "x" * size + CRAB,
    "emoji": lambda size: CRAB * (size // 4),
    "texts with an emoji each": lambda size: ["x" * 100_000 + CRAB for _ in range(size // 100_004)],
    "words with an emoji each": lambda size: [f"w{number}{CRAB}" for number in range(size // 14)],
    "objects with an emoji each": lambda size: [{"p": f"a{number}{CRAB}"} for number in range(size // 21)],
    "empty objects": lambda size: [{} for _ in range(size // 3)],
    "small objects": lambda size: [{"a": 1} for _ in range(size // 8)],
    "arrays": lambda size: [[0] for _ in range(size // 4)],
    "numbers": lambda size: [1.5 for _ in range(size // 4)],
    "large numbers": lambda size: [100000 + number for number in range(size // 7)],
    "names": lambda size: {f"n{number}": 0 for number in range(size // 11)},
}
IMPORTS = """
import io
from types import SimpleNamespace
from fermata.aws.blob_store import BlobStore, compress_json
from fermata.wire.http.json_body import parse_json_body
"""
READ_BODY = 'raw = open("it", "rb").read()'
READ_BLOB = """
stored = compress_json(open("it", "rb").read()).body
client = SimpleNamespace(get_object=lambda **_: {"Body": io.BytesIO(stored)})
blobs = BlobStore(client, "bucket", None)
"""


@pytest.fixture(scope="module")
def measurer() -> Iterator[PeakMeasurer]:
    with open_peak_measurer(IMPORTS) as opened:
        yield opened


def encode(value: Any, *, escaped: bool) -> bytes:
    return json.dumps({"snapshot": value}, ensure_ascii=escaped, separators=(",", ":")).encode()


def find_largest(make: MakeValue, limit: int, *, escaped: bool) -> bytes:
    """Return nearly the largest body of a shape that fits into memory. What it takes grows with its length."""
    sample = encode(make(limit // 10), escaped=escaped)
    share = min(limit / len(sample), MAX_JSON_MEMORY_BYTES / estimate_json_memory(sample.decode()))
    raw = encode(make(int(limit // 10 * share * 0.9)), escaped=escaped)
    assert len(raw) <= limit
    return raw


@pytest.mark.exhaustive
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux tells how much memory was used")
@pytest.mark.parametrize("escaped", [False, True], ids=["utf-8", "escaped"])
@pytest.mark.parametrize("shape", SHAPES)
def test_the_largest_body_fits_into_the_smallest_function(
    measurer: PeakMeasurer, tmp_path: Path, shape: str, escaped: bool
) -> None:
    (tmp_path / "it").write_bytes(find_largest(SHAPES[shape], MAX_REQUEST_BYTES, escaped=escaped))
    assert measurer.measure(READ_BODY, "kept = parse_json_body(raw)", tmp_path) < FREE_MEGABYTES


@pytest.mark.exhaustive
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux tells how much memory was used")
@pytest.mark.parametrize("shape", SHAPES)
def test_the_largest_upload_fits_into_the_function_that_reads_it_again(
    measurer: PeakMeasurer, tmp_path: Path, shape: str
) -> None:
    raw = find_largest(SHAPES[shape], 16_000_000, escaped=False)
    assert fits_into_memory(raw.decode())
    (tmp_path / "it").write_bytes(raw)
    assert measurer.measure(READ_BLOB, 'kept = blobs.get_json("key")', tmp_path) < FREE_MEGABYTES


def test_a_body_of_ordinary_parts_is_accepted_at_the_platforms_limit() -> None:
    nodes = {
        f"node-{number}": {"tag": "p", "text": "A paragraph of a page, as long as most are.", "children": []}
        for number in range(MAX_REQUEST_BYTES // 95)
    }
    raw = encode(nodes, escaped=False)
    assert MAX_REQUEST_BYTES * 0.9 < len(raw) <= MAX_REQUEST_BYTES
    assert parse_json_body(raw)["snapshot"] == nodes


def test_a_page_of_ordinary_parts_may_have_emoji() -> None:
    texts = [f"Paragraph {number} of the bakery. {CRAB}" for number in range(40_000)]
    nodes = [{"tag": "p", "text": text, "children": []} for text in texts]
    raw = encode(nodes, escaped=False)
    assert len(raw) > 2_500_000
    assert parse_json_body(raw)["snapshot"] == nodes
    assert parse_json_body(encode(nodes, escaped=True))["snapshot"] == nodes


def test_what_takes_more_memory_than_a_function_has_is_refused_in_words() -> None:
    raw = encode([{} for _ in range(1_900_000)], escaped=False)
    assert len(raw) < MAX_REQUEST_BYTES
    with pytest.raises(PayloadTooLarge, match="too many parts, or too long texts with emoji"):
        parse_json_body(raw)


@pytest.mark.parametrize(
    "text", ['{"a', "{" * 2_000_000, '"' * 2_000_001, "\\" * 2_000_000, '{"a":"' + "\\" * 1_500_001]
)
def test_an_estimate_of_what_is_no_json_is_an_estimate(text: str) -> None:
    assert estimate_json_memory(text) > len(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (r'{"a":"\ud83e\udd80"}', {"a": CRAB}),
        (r'{"a":"\ud83e"}', {"a": "\ufffd"}),
        (r'{"a":"\udd80 \ud83e"}', {"a": "\ufffd \ufffd"}),
        (r'{"a":"\\ud83e"}', {"a": r"\ud83e"}),
        (r'{"a":"\\ud83e\udd80"}', {"a": "\\ud83e\ufffd"}),
        (r'{"a":"\ud83e\\udd80"}', {"a": "\ufffd\\udd80"}),
        (r'{"\uD83E\uDD80":1}', {CRAB: 1}),
    ],
)
def test_lone_surrogates_are_replaced_and_pairs_kept(text: str, value: Any) -> None:
    assert parse_json_object(text) == value
