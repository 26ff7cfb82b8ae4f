"""`fermata audit`: its tables, its JSON, and its errors."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from fermata_client.cli import main
from fermata_client.stack.resources import LocalCloudAccess, find_local_stack
from tests.fixed_response_server import FixedResponseServer, run_fixed_response_server

USAGE = {"promptTokens": 1234, "completionTokens": 56, "chatCount": 2, "costUsd": 0.0123}
USAGE |= {"cacheReadTokens": 0, "cacheCreationTokens": 0}
AUDIT_REPORT = {
    "since": "2026-11-01T00:00:00.000Z",
    "totals": USAGE,
    "byUser": [{"userId": "u-1", "userLabel": "Ada"} | USAGE],
    "byScope": [{"scope": "site"} | USAGE],
    "byModel": [{"providerId": "anthropic", "modelId": "claude-sonnet-4-5"} | USAGE],
    "byDay": [{"day": "2026-11-28"} | USAGE],
}


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FixedResponseServer]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FERMATA_TOKEN", "token")
    with run_fixed_response_server() as fixed_server:
        fixed_server.body = json.dumps(AUDIT_REPORT).encode()
        monkeypatch.setenv("FERMATA_URL", fixed_server.url)
        yield fixed_server


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["audit", *arguments])


def test_it_shows_who_used_what_with_which_model_on_which_day(server: FixedResponseServer) -> None:
    result = run("--since", "2026-11-01", "--tz", "Europe/Berlin")
    assert result.exit_code == 0
    for text in ("since 2026-11-01", "Ada", "site", "anthropic/claude-sonnet-4-5", "2026-11-28", "1,234", "0.0123"):
        assert text in result.stdout


def test_it_says_where_a_cost_is_not_known(server: FixedResponseServer) -> None:
    totals = USAGE | {"costUsd": 0, "unpricedRequests": 1200}
    server.body = json.dumps(AUDIT_REPORT | {"totals": totals}).encode()
    [line] = [line for line in run().stdout.splitlines() if "everything" in line]
    assert line.endswith("0.0000  + 1,200 without a known price")


def test_it_prints_the_whole_answer_for_programs(server: FixedResponseServer) -> None:
    assert json.loads(run("--json").stdout) == AUDIT_REPORT


def test_a_caller_without_permission_gets_one_sentence(server: FixedResponseServer) -> None:
    server.status, server.body = 403, b'{"error":"Forbidden"}'
    result = run()
    assert result.exit_code == 1
    assert result.stderr.count("\n") == 1
    assert "does not allow this token" in result.stderr


def test_an_operator_without_a_deployment_reads_how_to_name_one(server: FixedResponseServer) -> None:
    result = run("--reconcile")
    assert result.exit_code == 1
    assert "--stack" in result.stderr


def test_the_stack_of_make_run_is_found_from_any_folder_below_it_and_changes_no_environment(tmp_path: Path) -> None:
    before = dict(os.environ)
    url = "http://127.0.0.1:8787"
    state = {"url": url, "endpoint": "http://127.0.0.1:4566", "accessKeyId": "id", "secretAccessKey": "secret"}
    (tmp_path / ".fermata").mkdir()
    (tmp_path / ".fermata" / "local.json").write_text(json.dumps(state))
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    location = find_local_stack(start=below)
    assert location is not None
    assert location.local == LocalCloudAccess("http://127.0.0.1:4566", "id", "secret", url)
    assert (location.stack, location.region) == ("fermata", None)
    client = location.create_client("logs")
    assert (client.meta.endpoint_url, client.meta.region_name) == ("http://127.0.0.1:4566", "us-east-1")
    assert dict(os.environ) == before
