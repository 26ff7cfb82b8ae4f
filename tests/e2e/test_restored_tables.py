"""Lose the tables and restore them as docs/operations.md says: turns go on, and nothing is missing.

The commands are those of that page. The local cloud's own deployment takes the place of `sam deploy`.
"""

import re
import shlex
from collections.abc import Callable, Iterator

import pytest
from botocore.exceptions import ClientError
from click.testing import CliRunner, Result

from fermata.usage.audit.reconciliation import reconcile_usage
from fermata_client import follow_turn
from fermata_client.cli import main
from fermata_client.commands.deployment import tables
from fermata_client.commands.workspace import audit
from fermata_client.stack.resources import LocalCloudAccess, StackLocation
from fermata_client.stack.table_backups import STACK_TABLES
from local.cloud import LocalCloud
from local.processes import ROOT
from local.request_signature import get_run_credentials
from local.seed import TENANT
from tests.e2e import turn_checks
from tests.e2e.chat_session import INSERT_CALL, OK_RESULT, ChatSession
from tests.e2e.demo_model_client import DemoModelClient, text_step, tool_call_step
from tests.waiting import wait_until

pytestmark = pytest.mark.cloud

SECTION = re.compile(r"^## Restore the tables$(?P<text>.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^\$ (?P<line>.+(?:\\\n.+)*)$", re.MULTILINE)


@pytest.fixture(scope="module")
def lossy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCloud]:
    """A cloud of this module, whose tables are lost."""
    with LocalCloud(tmp_path_factory.mktemp("lossy"), environment={"START_GRACE_SECONDS": 1}) as running:
        yield running


@pytest.fixture
def new_session(lossy: LocalCloud) -> Iterator[Callable[[], ChatSession]]:
    assert lossy.model is not None
    model = DemoModelClient(lossy.model.url)
    made: list[ChatSession] = []

    def make() -> ChatSession:
        made.append(ChatSession(lossy, lossy.resources(), model, lossy.token))
        return made[-1]

    yield make
    for session in made:
        session.close()
    model.close()


@pytest.fixture
def fermata(lossy: LocalCloud, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Result]:
    """Run a command of an operator. `--stack` names a stack on the local cloud."""
    credentials = get_run_credentials()
    access = LocalCloudAccess(lossy.endpoint, credentials.access_key_id, credentials.secret_access_key)

    def locate(stack: str | None, region: str | None = None) -> StackLocation:
        return StackLocation(stack, region, access)

    for module in (tables, audit):
        monkeypatch.setattr(module, "StackLocation", locate)

    def run(line: str) -> Result:
        result = CliRunner().invoke(main, shlex.split(line))
        assert result.exit_code == 0, result.output
        return result

    return run


def documented_commands() -> list[str]:
    """Return the commands of the page, without their program and where their output goes."""
    section = SECTION.search((ROOT / "docs" / "operations.md").read_text())
    assert section is not None
    lines = [match["line"].replace("\\\n", " ") for match in COMMAND.finditer(section["text"])]
    return [line.partition(" > ")[0].removeprefix(".venv/bin/fermata ") for line in lines]


def table_names(cloud: LocalCloud) -> list[str]:
    return [cloud.get_output(table.output) for table in STACK_TABLES]


def delete_tables(cloud: LocalCloud) -> None:
    """Lose all tables, which somebody has to allow first."""
    dynamodb = cloud.get_client("dynamodb")
    for name in table_names(cloud):
        with pytest.raises(ClientError, match=r"[Dd]eletion protection"):
            dynamodb.delete_table(TableName=name)
        dynamodb.update_table(TableName=name, DeletionProtectionEnabled=False)
        dynamodb.delete_table(TableName=name)


def count_audited_tokens(session: ChatSession) -> int:
    """Count the tokens of the audit once the whole ledger is in it."""
    resources = session.cloud.resources()

    def differences() -> list[str]:
        return [one for one in reconcile_usage(resources, TENANT, None, "UTC", []) if "log" not in one]

    wait_until(lambda: not differences(), "the audit has the whole ledger")
    totals = session.client.get_audit()["totals"]
    return int(totals["promptTokens"]) + int(totals["completionTokens"])


def restore_as_documented(cloud: LocalCloud, fermata: Callable[[str], Result], commands: list[str]) -> None:
    adopted: dict[str, str] = {}
    for line in commands:
        if line.startswith("sam deploy"):
            assert "$(cat build/adopted.txt)" in line
            cloud.redeploy(parameters=adopted)
        else:
            result = fermata(line.replace("--tenant bakery", f"--tenant {TENANT}"))
            if line.startswith("tables restore"):
                adopted = dict(pair.split("=", 1) for pair in result.stdout.split())


def test_the_documented_restore_brings_lost_tables_back(
    lossy: LocalCloud, new_session: Callable[[], ChatSession], fermata: Callable[[str], Result]
) -> None:
    back_up, *restore = documented_commands()
    ended, paused = new_session(), new_session()
    view = ended.run_turn(text_step("Before the loss.")).view
    paused.start_turn(tool_call_step(INSERT_CALL), text_step("Here I am again.")).wait_for_event("toolRequest")
    messages = ended.client.list_messages(ended.conversation)
    tokens = count_audited_tokens(ended)
    fermata(back_up)
    names = table_names(lossy)
    delete_tables(lossy)
    restore_as_documented(lossy, fermata, restore)
    assert not set(table_names(lossy)) & set(names)
    after_ended, after_paused = (adopt_tables(session, lossy) for session in (ended, paused))
    assert count_audited_tokens(after_ended) == tokens
    assert after_ended.client.list_messages(ended.conversation) == messages
    assert turn_checks.check_turn(after_ended) == view
    followed = follow_turn(after_paused.client, paused.bridge, executor=lambda _: OK_RESULT).view
    assert followed.text == "Here I am again."
    assert turn_checks.check_turn(after_paused) == followed
    assert after_ended.run_turn(text_step("After it.")).view.text == "After it."
    assert count_audited_tokens(after_ended) > tokens, "the stream of the adopted ledger is read"
    check_settings_of_tables(lossy)


def adopt_tables(session: ChatSession, cloud: LocalCloud) -> ChatSession:
    """Look at the tables that the stack has now."""
    session.resources = cloud.resources()
    return session


def check_settings_of_tables(cloud: LocalCloud) -> None:
    """An adopted table has what the template gives to those that the stack makes."""
    dynamodb = cloud.get_client("dynamodb")
    for table in STACK_TABLES:
        name = cloud.get_output(table.output)
        described = dynamodb.describe_table(TableName=name)["Table"]
        expiry = dynamodb.describe_time_to_live(TableName=name)["TimeToLiveDescription"]["TimeToLiveStatus"]
        backups = dynamodb.describe_continuous_backups(TableName=name)["ContinuousBackupsDescription"]
        recovery = backups["PointInTimeRecoveryDescription"]["PointInTimeRecoveryStatus"]
        assert (expiry == "ENABLED") == table.has_expiry
        assert described.get("StreamSpecification", {}).get("StreamEnabled", False) == table.has_stream
        assert recovery == "ENABLED"
        assert described["DeletionProtectionEnabled"] is True


def test_an_instant_is_restored_beside_tables_that_exist_and_again_where_it_stopped(
    lossy: LocalCloud, fermata: Callable[[str], Result]
) -> None:
    """The emulator restores what a table holds now, whatever the instant."""
    before = table_names(lossy)
    command = "tables restore --stack fermata --at 2026-11-28T12:00:00Z --label again"
    first, again = fermata(command), fermata(command)
    assert first.stdout == again.stdout
    assert [line.partition("=")[0] for line in first.stdout.split()] == [table.parameter for table in STACK_TABLES]
    assert "from before" in again.stderr
    assert table_names(lossy) == before, "nothing of the stack changes"
