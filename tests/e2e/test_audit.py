"""Money, end to end: rows of the ledger through the stream into the audit, budgets at the front door."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from fermata.credentials import defaults, keyring
from fermata.usage.reconciling import reconcile
from fermata.words.caller import Caller
from fermata_client.deployment import LOCAL_ACCOUNT, LOCAL_STACK
from fermata_client.usage_lines import EVENTS
from local.cloud import LocalCloud
from local.processes import outer_environment
from local.seed import CAPABILITIES, EDITOR, LocalDesk
from tests.callers import Signer, make_tenant
from tests.e2e.faults import Faults
from tests.e2e.model import Model, calls, says, slowly
from tests.e2e.talk import INSERT, OK, Talk, http

PATIENCE = 20.0
PRICED = "fermata-demo"
"""A request may cost 0.041 USD for its answer, and a little for its prompt."""
Json = dict[str, Any]


@pytest.fixture(scope="module")
def firm(desk: LocalDesk) -> Signer:
    """A tenant whose numbers nobody else changes."""
    signer = make_tenant(desk, "weighed", issuer="http://127.0.0.1/weighed")
    caller = Caller(tenant="weighed", user="ada", capabilities=frozenset((*CAPABILITIES, *EDITOR)))
    credential = keyring.create(desk, caller, "anthropic", "apiKey", "demo", "demo")
    defaults.set_default(desk, caller, "site", credential.id, PRICED)
    return signer


@pytest.fixture(scope="module")
def token(firm: Signer) -> str:
    return firm.token("ada", (*CAPABILITIES, *EDITOR), name="Ada Lovelace")


@pytest.fixture
def new_talk(cloud: LocalCloud, desk: LocalDesk, model: Model, token: str) -> Iterator[Callable[[], Talk]]:
    made: list[Talk] = []

    def make() -> Talk:
        made.append(Talk(cloud, desk, model, token, tenant="weighed"))
        return made[-1]

    yield make
    for talk in made:
        talk.close()


@pytest.fixture
def admin(cloud: LocalCloud, token: str) -> Iterator[httpx.Client]:
    with http(cloud, token) as client:
        yield client
        assert client.put("/budgets", json={}).status_code == 200


def usage_lines(cloud: LocalCloud) -> list[Json]:
    lines = (json.loads(line) for line in cloud.log_lines("rollup") if '"usage' in line)
    return [line for line in lines if line.get("event") in EVENTS]


def settled(cloud: LocalCloud, desk: LocalDesk) -> None:
    """The stream has brought everything, and all books agree."""
    deadline = time.monotonic() + PATIENCE
    while differences := reconcile(desk, "weighed", None, "Asia/Kathmandu", usage_lines(cloud)):
        assert time.monotonic() < deadline, differences
        time.sleep(0.2)


def test_what_a_turn_used_is_in_the_audit_and_in_the_logs(
    cloud: LocalCloud, desk: LocalDesk, new_talk: Callable[[], Talk], admin: httpx.Client
) -> None:
    outcome = new_talk().run(calls(INSERT), says("Done."), executor=lambda _: OK)
    settled(cloud, desk)
    found = admin.get("/audit", params={"tz": "Asia/Kathmandu"}).json()
    told = outcome.view.usage or {}
    assert found["totals"]["promptTokens"] == told["promptTokens"] > 0
    assert round(found["totals"]["costUsd"], 6) == told["costUsd"] > 0
    assert [row["userLabel"] for row in found["byUser"]] == ["Ada Lovelace"]
    assert [row["modelId"] for row in found["byModel"]] == [PRICED]
    assert [line["round"] for line in usage_lines(cloud) if line["tenant"] == "weighed"] == [1, 2]


def test_an_operators_command_finds_the_books_in_the_cloud_and_says_that_they_agree(
    cloud: LocalCloud, desk: LocalDesk
) -> None:
    settled(cloud, desk)
    command = [sys.executable, "-c", "from fermata_client.cli import main; main()", "audit", "--reconcile"]
    here = outer_environment() | LOCAL_ACCOUNT | {"AWS_ENDPOINT_URL": cloud.endpoint}
    done = subprocess.run(
        [*command, "--tenant", "weighed", "--stack", LOCAL_STACK], env=here, capture_output=True, text=True, check=False
    )
    assert "agree since" in done.stdout, done.stdout + done.stderr


def test_a_rollup_that_dies_after_it_counted_counts_nothing_twice(
    cloud: LocalCloud, desk: LocalDesk, new_talk: Callable[[], Talk], admin: httpx.Client, faults: Faults
) -> None:
    settled(cloud, desk)
    before = admin.get("/audit").json()["totals"]
    with faults.once("dynamodb.TransactWriteItems", "exit", when="after", contains="#rollup#1#counted#"):
        new_talk().run(says("Hello."))
    deadline = time.monotonic() + PATIENCE
    while (after := admin.get("/audit").json()["totals"])["chatCount"] == before["chatCount"]:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    new_talk().run(says("Hello again."))
    missing = "in the ledger, and no line in the logs."
    while len(found := reconcile(desk, "weighed", None, None, usage_lines(cloud))) != 1:
        assert time.monotonic() < deadline, (found, after)
        time.sleep(0.2)
    assert found[0].endswith(missing), "the line died with its function; the sums are right"


def test_of_turns_that_start_at_once_with_room_for_one_at_most_one_is_admitted(
    cloud: LocalCloud, token: str, new_talk: Callable[[], Talk], admin: httpx.Client
) -> None:
    spent = admin.get("/budgets").json()["tenant"]["today"]["spentUsd"]
    assert admin.put("/budgets", json={"tenant": {"dailyUsd": spent + 0.08}}).status_code == 200
    talks = [new_talk() for _ in range(8)]
    bodies = [{"conversationId": talk.conversation, "prompt": talk.prompt(slowly("Hi there.", 5))} for talk in talks]

    def start(body: Json) -> httpx.Response:
        with http(cloud, token) as bare:
            return bare.post("/chat/site", json=body, headers={"accept": "application/json"})

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(start, bodies))
    refused = [answer for answer in answers if answer.status_code == 402]
    assert len(refused) >= 7
    assert {answer.status_code for answer in answers} <= {202, 402}
    assert "It renews at" in refused[0].json()["error"]
