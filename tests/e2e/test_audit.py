"""Test usage end to end: ledger rows, the stream, the audit and budgets."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from fermata.credentials import credential_store, scope_defaults
from fermata.domain.caller import Caller
from fermata.usage.audit.reconciliation import reconcile_usage
from fermata_client.service.connection_files import PROJECT_CONNECTION_FILE, write_connection_file
from fermata_client.stack.usage_logs import USAGE_LOG_EVENTS
from local.cloud import LocalCloud
from local.processes import inherited_environment
from local.run import describe_connection
from local.seed import CAPABILITIES, EDITOR_CAPABILITIES, LocalResources
from tests.e2e.chat_session import INSERT_CALL, OK_RESULT, ChatSession, open_http
from tests.e2e.demo_model_client import DemoModelClient, held_text_step, text_step, tool_call_step
from tests.e2e.fault_rules import FaultRules
from tests.tenant_tokens import TokenSigner, make_tenant
from tests.waiting import wait_until

PRICED = "fermata-demo"
"""A request may cost 0.041 USD for its answer, and a little for its prompt."""
Json = dict[str, Any]


@pytest.fixture(scope="module")
def firm(resources: LocalResources) -> TokenSigner:
    """A tenant whose usage no other test changes."""
    signer = make_tenant(resources, "weighed", issuer="http://127.0.0.1/weighed")
    caller = Caller(tenant="weighed", user="ada", capabilities=frozenset((*CAPABILITIES, *EDITOR_CAPABILITIES)))
    credential = credential_store.create_credential(resources, caller, "anthropic", "apiKey", "demo", "demo")
    scope_defaults.set_default(resources, caller, "site", credential.id, PRICED)
    return signer


@pytest.fixture(scope="module")
def token(firm: TokenSigner) -> str:
    return firm.sign_token("ada", (*CAPABILITIES, *EDITOR_CAPABILITIES), name="Ada Lovelace")


@pytest.fixture
def new_session(
    cloud: LocalCloud, resources: LocalResources, model: DemoModelClient, token: str
) -> Iterator[Callable[[], ChatSession]]:
    made: list[ChatSession] = []

    def make() -> ChatSession:
        made.append(ChatSession(cloud, resources, model, token, tenant="weighed"))
        return made[-1]

    yield make
    for session in made:
        session.close()


@pytest.fixture
def admin(cloud: LocalCloud, token: str) -> Iterator[httpx.Client]:
    with open_http(cloud, token) as client:
        yield client
        assert client.put("/budgets", json={}).status_code == 200


def usage_lines(cloud: LocalCloud) -> list[Json]:
    lines = (json.loads(line) for line in cloud.read_log_lines("rollup") if '"usage' in line)
    return [line for line in lines if line.get("event") in USAGE_LOG_EVENTS]


def wait_until_settled(cloud: LocalCloud, resources: LocalResources) -> None:
    """Wait until the stream has delivered everything, and ledger, rollups and logs agree."""
    wait_until(
        lambda: not reconcile_usage(resources, "weighed", None, "Asia/Kathmandu", usage_lines(cloud)),
        "ledger, rollups and logs agree",
    )


def test_what_a_turn_used_is_in_the_audit_and_in_the_logs(
    cloud: LocalCloud, resources: LocalResources, new_session: Callable[[], ChatSession], admin: httpx.Client
) -> None:
    outcome = new_session().run_turn(tool_call_step(INSERT_CALL), text_step("Done."), executor=lambda _: OK_RESULT)
    wait_until_settled(cloud, resources)
    found = admin.get("/audit", params={"tz": "Asia/Kathmandu"}).json()
    shown_usage = outcome.view.usage or {}
    assert found["totals"]["promptTokens"] == shown_usage["promptTokens"] > 0
    assert round(found["totals"]["costUsd"], 6) == shown_usage["costUsd"] > 0
    assert [row["userLabel"] for row in found["byUser"]] == ["Ada Lovelace"]
    assert [row["modelId"] for row in found["byModel"]] == [PRICED]
    assert [line["round"] for line in usage_lines(cloud) if line["tenant"] == "weighed"] == [1, 2]


def test_the_operators_command_reconciles_the_usage_in_the_cloud(
    cloud: LocalCloud, resources: LocalResources, tmp_path: Path
) -> None:
    wait_until_settled(cloud, resources)
    command = [sys.executable, "-c", "from fermata_client.cli import main; main()", "audit", "--reconcile"]
    write_connection_file(tmp_path / PROJECT_CONNECTION_FILE, describe_connection(cloud))
    done = subprocess.run(
        [*command, "--tenant", "weighed"],
        env=inherited_environment(),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "agree since" in done.stdout, done.stdout + done.stderr


def test_a_rollup_that_dies_after_it_counted_counts_nothing_twice(
    cloud: LocalCloud,
    resources: LocalResources,
    new_session: Callable[[], ChatSession],
    admin: httpx.Client,
    faults: FaultRules,
) -> None:
    wait_until_settled(cloud, resources)
    before = admin.get("/audit").json()["totals"]
    with faults.expect_fault("dynamodb.TransactWriteItems", "exit", when="after", contains="#rollup#1#counted#"):
        new_session().run_turn(text_step("Hello."))
    wait_until(lambda: admin.get("/audit").json()["totals"]["chatCount"] != before["chatCount"], "the turn is counted")
    new_session().run_turn(text_step("Hello again."))

    def find_only_difference() -> str:
        differences = reconcile_usage(resources, "weighed", None, None, usage_lines(cloud))
        return differences[0] if len(differences) == 1 else ""

    difference = wait_until(find_only_difference, "only the log line that died with its function is missing")
    assert difference.endswith("in the ledger, and no line in the logs.")


def test_of_concurrent_turns_with_budget_for_one_at_most_one_is_admitted(
    cloud: LocalCloud, token: str, new_session: Callable[[], ChatSession], admin: httpx.Client, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    spent = admin.get("/budgets").json()["tenant"]["today"]["spentUsd"]
    assert admin.put("/budgets", json={"tenant": {"dailyUsd": spent + 0.08}}).status_code == 200
    sessions = [new_session() for _ in range(8)]
    bodies = [
        {
            "conversationId": session.conversation,
            "prompt": session.scripted_prompt(held_text_step("Hi there.", gate, after=2)),
        }
        for session in sessions
    ]

    def start(body: Json) -> httpx.Response:
        with open_http(cloud, token) as bare:
            return bare.post("/chat/site", json=body, headers={"accept": "application/json"})

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(start, bodies))
    gate.touch()
    refused = [answer for answer in answers if answer.status_code == 402]
    assert len(refused) >= 7
    assert {answer.status_code for answer in answers} <= {202, 402}
    assert "It renews at" in refused[0].json()["error"]
