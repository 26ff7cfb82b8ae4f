"""Export and erase a person's data with the commands of docs/privacy.md, while the person's turn runs."""

import gzip
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from fermata.aws.dynamodb_items_and_writes import Update
from fermata.credentials import credential_store, scope_defaults
from fermata.domain.caller import Caller
from fermata.wire.auth.tenant_erasure_mark import hash_tenant_name
from fermata_client.cli import main
from fermata_client.service.connection_files import PROJECT_CONNECTION_FILE, write_connection_file
from local.cloud import LocalCloud
from local.run import describe_connection
from local.seed import CAPABILITIES, EDITOR_CAPABILITIES, LocalResources
from tests.e2e.chat_session import INSERT_CALL, OK_RESULT, ChatSession, make_snapshot, open_http
from tests.e2e.demo_model_client import DemoModelClient, held_text_step, text_step, tool_call_step
from tests.e2e.fault_rules import FaultRules
from tests.tenant_tokens import TokenSigner, make_tenant
from tests.unit.privacy.filled_tenant import find_traces
from tests.waiting import wait_until

PERSON = "grace-41d8"
PROMPT = "a-private-wish-of-grace"


@pytest.fixture(scope="module")
def registry(resources: LocalResources) -> TokenSigner:
    """A tenant of its own, because a run goes on with the jobs of all."""
    signer = make_tenant(resources, "registry", issuer="http://127.0.0.1/registry")
    caller = Caller(tenant="registry", user="admin", capabilities=frozenset((*CAPABILITIES, *EDITOR_CAPABILITIES)))
    credential = credential_store.create_credential(resources, caller, "anthropic", "apiKey", "demo", "demo")
    scope_defaults.set_default(resources, caller, "site", credential.id, "fermata-demo")
    return signer


@pytest.fixture(scope="module", autouse=True)
def without_schedule(cloud: LocalCloud) -> Iterator[None]:
    """Disable the schedule of open jobs, which would go on with them between two steps of a test."""
    events = cloud.get_client("events")
    (name,) = (rule["Name"] for rule in events.list_rules()["Rules"] if "PurgeFunctionJobs" in rule["Name"])
    events.disable_rule(Name=name)
    yield
    events.enable_rule(Name=name)


@pytest.fixture
def fermata(
    cloud: LocalCloud, registry: TokenSigner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Result]:
    """The command line in a folder of which `make run` has told the local cloud's address."""
    write_connection_file(tmp_path / PROJECT_CONNECTION_FILE, describe_connection(cloud))
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> Result:
        where = {"FERMATA_URL": cloud.url, "FERMATA_TOKEN": registry.sign_token("admin")}
        return CliRunner().invoke(main, list(arguments), env=where)

    return run


@pytest.fixture
def person(
    cloud: LocalCloud, resources: LocalResources, model: DemoModelClient, registry: TokenSigner
) -> Iterator[ChatSession]:
    token = registry.sign_token(PERSON, (*CAPABILITIES, *EDITOR_CAPABILITIES))
    session = ChatSession(cloud, resources, model, token, tenant="registry")
    yield session
    session.close()


def read_export(folder: Path) -> list[dict[str, object]]:
    parts = sorted(folder.glob("*.ndjson.gz"))
    return [json.loads(line) for part in parts for line in gzip.decompress(part.read_bytes()).splitlines()]


def test_a_persons_data_is_exported_downloaded_and_erased_with_the_documented_commands(
    cloud: LocalCloud,
    resources: LocalResources,
    person: ChatSession,
    fermata: Callable[..., Result],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    person.run_turn(
        tool_call_step(INSERT_CALL),
        text_step("Done."),
        snapshot=lambda: make_snapshot("Home"),
        executor=lambda _: OK_RESULT,
    )
    waiting = person.start_turn(tool_call_step(INSERT_CALL), words=PROMPT)
    waiting.wait_for_event("toolRequest")
    export = fermata("privacy", "export", "--user", PERSON).stdout.strip()
    assert "not done yet" in fermata("privacy", "download", export, "--out", "early").stderr
    run_jobs(lambda: cloud.invoke_function("purge", {"v": 1, "jobsOnly": True}), fermata, "export", export, "done")
    downloaded = fermata("privacy", "download", export, "--out", "mine")
    assert downloaded.exit_code == 0, downloaded.output
    text = json.dumps(read_export(tmp_path / "mine"))
    assert PROMPT in text
    assert PERSON in text
    assert (tmp_path / "mine").stat().st_mode & 0o077 == 0, "other people on the machine cannot read it"

    erasure = fermata("privacy", "erase", "--user", PERSON, "--yes").stdout.strip()
    monkeypatch.setattr("fermata.privacy.erasure.SETTLING_SECONDS", 0)
    run_jobs(lambda: fermata("privacy", "run"), fermata, "erase", erasure, "settling")
    assert waiting.wait_for_end()[-1]["type"] == "cancelled"
    receipt = run_jobs(lambda: fermata("privacy", "run"), fermata, "erase", erasure, "done")
    assert receipt["counts"]["turns"] == 2
    assert find_traces(resources, PERSON, PROMPT) == []
    with open_http(cloud, person.token) as http:
        assert http.get("/conversations", params={"scope": "site"}).json()["conversations"] == []


def test_an_erasure_that_is_killed_goes_on_while_the_persons_answer_still_streams(
    cloud: LocalCloud,
    resources: LocalResources,
    person: ChatSession,
    fermata: Callable[..., Result],
    faults: FaultRules,
    tmp_path: Path,
) -> None:
    """The function that erases dies in the middle of a turn's rows. The round's function goes on writing meanwhile."""
    gate = tmp_path / "gate"
    person.run_turn(tool_call_step(INSERT_CALL), text_step("Done."), executor=lambda _: OK_RESULT)
    streaming = person.start_turn(held_text_step(f"Hello, {PERSON}, {PROMPT}. " * 40, gate), words=PROMPT)
    streaming.wait_for_event("text")
    erasure = fermata("privacy", "erase", "--user", PERSON, "--yes").stdout.strip()

    def purge() -> Any:
        return cloud.invoke_function("purge", {"v": 1, "jobsOnly": True})

    with faults.expect_fault("dynamodb.BatchWriteItem", "exit", when="after"):
        purge()
    gate.touch()
    run_jobs(purge, fermata, "erase", erasure, "settling")
    streaming.drop_connection()  # it may have missed the last entry of a log that is gone
    wait_until(lambda: cloud.worker_pids("round", busy=True) == [], "the round's function has ended")
    for _ in range(3):
        make_due(resources, "registry", erasure)
        purge()
    assert json.loads(fermata("privacy", "erase-status", erasure).stdout)["state"] == "done"
    assert find_traces(resources, PERSON, PROMPT) == []


def make_due(resources: LocalResources, tenant: str, job: str) -> None:
    """Let the next pass of an erasure begin now instead of after twenty minutes."""
    key = (f"privacy#{hash_tenant_name(tenant)}", job)
    update = Update(resources.settings.settings_table, *key, "SET not_before = :now", {":now": 0})
    resources.tables.write_items(update)


def run_jobs(
    run: Callable[[], object], fermata: Callable[..., Result], kind: str, job: str, state: str
) -> dict[str, Any]:
    """Run the open jobs until this one has a state."""

    def find_job() -> dict[str, Any]:
        run()
        found: dict[str, Any] = json.loads(fermata("privacy", f"{kind}-status", job).stdout)
        return found if found["state"] == state else {}

    return wait_until(find_job, f"the {kind} is {state}")
