"""Generated data of the benchmark has the form of the service's own."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bench.audit_queries import response_item_bytes
from bench.aws_calls import AwsCall
from bench.harness import DEMO_PAGE
from bench.large_site import PAGE_COUNT, STYLE_RULE_COUNT, add_asset, enlarge_snapshot, peak_memory_kb
from bench.synthetic_ledger import generate_ledger_rows, usage_from_row
from fermata.agents import registry
from fermata.aws.clock import iso_from_epoch
from fermata.aws.dynamodb_items_and_writes import Item
from fermata.aws.resources import Resources
from fermata.usage.ledger import ledger_store
from fermata.usage.ledger.ledger_parsing import parse_request_row
from fermata.wire.http.json_body import MAX_REQUEST_BYTES
from fermata_client import HtmlFile, HtmlFileExecutor
from tests.resources import clock, resources

__all__ = ["clock", "resources"]
NOW = 1_800_000_000.0


def few_rows() -> list[Item]:
    return list(generate_ledger_rows(NOW, users=3, chats=7, rounds=4, row_count=400))


def test_generated_rows_are_deterministic_and_within_thirty_days() -> None:
    rows = few_rows()
    assert rows == few_rows()
    assert len(rows) == 400
    assert min(row["at"] for row in rows) >= iso_from_epoch(NOW - 30 * 86400)
    assert len({(row["turn"], row["sk"]) for row in rows}) == 400
    assert len({row["user"] for row in rows}) == 3


def test_a_generated_row_has_the_increments_of_the_stored_row(resources: Resources) -> None:
    for row in few_rows():
        stored = ledger_store.build_request_put(resources, usage_from_row(row)).item
        assert parse_request_row(row).increments == parse_request_row(stored).increments


def test_the_size_of_a_response_is_that_of_all_its_items() -> None:
    item = {"pk": {"S": "a"}, "data": {"B": "AAAA"}}

    def response_bytes(**response: object) -> int:
        record = {"service": "dynamodb", "operation": "Query", "atNs": 1, "request": {}, "response": response}
        return response_item_bytes(AwsCall.from_record(record))

    item_size = len("pk") + 1 + len("data") + 3
    assert response_bytes(Items=[item, item]) == 2 * item_size
    assert response_bytes(Item=item) == item_size
    assert response_bytes(Count=0) == 0


def large_snapshot() -> dict[str, Any]:
    return enlarge_snapshot(HtmlFileExecutor(HtmlFile(DEMO_PAGE)).snapshot())


def test_the_service_can_read_the_large_site() -> None:
    snapshot = large_snapshot()
    situation = registry.open_agent("site").build_situation(snapshot)
    assert f"page-{PAGE_COUNT - 1}=" in situation
    assert "unreadable" not in situation
    assert len(snapshot["site"]["styleRules"]) == STYLE_RULE_COUNT


@pytest.mark.parametrize("total_bytes", [500_000, 5_000_000])
def test_an_asset_brings_the_snapshot_to_its_size_within_the_request_limit(total_bytes: int) -> None:
    snapshot_bytes = len(json.dumps(add_asset(large_snapshot(), total_bytes), separators=(",", ":")))
    assert total_bytes - 1000 <= snapshot_bytes <= total_bytes < MAX_REQUEST_BYTES


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux reports peak memory")
def test_the_peak_memory_of_a_process_includes_what_it_has_freed() -> None:
    program = "import sys; b'x' * 50_000_000; print('.', flush=True); sys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert peak_memory_kb(process.pid) > 50_000
        process.communicate()
    assert peak_memory_kb(process.pid) == 0
