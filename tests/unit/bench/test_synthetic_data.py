"""What the bench makes up is as the service would have it."""

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
from bench.synthetic_ledger import generate_ledger_rows, spent_from_row
from fermata.aws.clock import iso_from_epoch
from fermata.aws.resources import Resources
from fermata.tools import registry
from fermata.usage.ledger import ledger_store
from fermata.usage.ledger.ledger_parsing import parse_request_row
from fermata.wire.http.json_body import MAX_REQUEST_BYTES
from fermata_client import HtmlFile, HtmlFileExecutor
from tests.resources import clock, resources

__all__ = ["clock", "resources"]
NOW = 1_800_000_000.0
FEW: dict[str, int] = {"users": 3, "chats": 7, "rounds": 4, "count": 400}


def test_a_month_of_rows_is_the_same_each_time_and_no_row_is_older() -> None:
    told = list(generate_ledger_rows(NOW, **FEW))
    assert told == list(generate_ledger_rows(NOW, **FEW))
    assert len(told) == 400
    assert min(row["at"] for row in told) >= iso_from_epoch(NOW - 30 * 86400)
    assert len({(row["turn"], row["sk"]) for row in told}) == 400
    assert len({row["user"] for row in told}) == 3


def test_a_row_adds_the_same_to_the_rollups_as_the_one_that_the_ledger_keeps(resources: Resources) -> None:
    for row in generate_ledger_rows(NOW, **FEW):
        assert (
            parse_request_row(row).postings
            == parse_request_row(ledger_store.build_request_put(resources, spent_from_row(row)).item).postings
        )


def test_the_size_of_an_answer_is_that_of_all_its_items() -> None:
    item = {"pk": {"S": "a"}, "data": {"B": "AAAA"}}

    def sized(**response: object) -> int:
        record = {"service": "dynamodb", "operation": "Query", "atNs": 1, "request": {}, "response": response}
        return response_item_bytes(AwsCall.from_record(record))

    each = len("pk") + 1 + len("data") + 3
    assert sized(Items=[item, item]) == 2 * each
    assert sized(Item=item) == each
    assert sized(Count=0) == 0


def site() -> dict[str, Any]:
    return enlarge_snapshot(HtmlFileExecutor(HtmlFile(DEMO_PAGE)).snapshot())


def test_a_large_site_is_one_that_is_read_and_not_one_that_is_given_up() -> None:
    snapshot = site()
    told = registry.build_situation("site", snapshot)
    assert f"page-{PAGE_COUNT - 1}=" in told
    assert "unreadable" not in told
    assert len(snapshot["site"]["styleRules"]) == STYLE_RULE_COUNT


@pytest.mark.parametrize("size", [500_000, 5_000_000])
def test_a_snapshot_is_as_large_as_it_is_said_to_be_and_still_taken(size: int) -> None:
    made = len(json.dumps(add_asset(site(), size), separators=(",", ":")))
    assert size - 1000 <= made <= size < MAX_REQUEST_BYTES


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux tells what a process ever had")
def test_the_peak_of_a_process_is_told_although_it_gave_the_memory_back() -> None:
    program = "import sys; b'x' * 50_000_000; print('.', flush=True); sys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert peak_memory_kb(process.pid) > 50_000
        process.communicate()
    assert peak_memory_kb(process.pid) == 0
