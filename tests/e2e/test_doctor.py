"""`fermata doctor` examines the local cloud: the stack, a turn with the test model, the alarms, and the account."""

import dataclasses

import pytest
from click.testing import CliRunner, Result

from fermata.conversations import conversation_store
from fermata.credentials import credential_store
from fermata.domain.caller import Caller
from fermata_client.cli import main
from fermata_client.stack.resources import LOCAL_STACK_NAME, LocalCloudAccess, StackLocation
from local.cloud import LocalCloud
from local.processes import ROOT
from local.request_signature import get_run_credentials

DOCTOR = Caller(tenant="fermata-doctor", user="doctor", capabilities=frozenset())


@pytest.fixture
def run(cloud: LocalCloud, monkeypatch: pytest.MonkeyPatch) -> "Run":
    return Run(cloud, monkeypatch)


@dataclasses.dataclass
class Run:
    """Runs the command against the local cloud."""

    cloud: LocalCloud
    monkeypatch: pytest.MonkeyPatch

    def __call__(self, *arguments: str, stack: str | None = LOCAL_STACK_NAME) -> Result:
        credentials = get_run_credentials()
        key = (credentials.access_key_id, credentials.secret_access_key)
        access = LocalCloudAccess(self.cloud.endpoint, *key, self.cloud.url)
        located = StackLocation(stack, None, access)
        self.monkeypatch.setattr("fermata_client.commands.deployment.doctor.find_local_stack", lambda region: located)
        return CliRunner().invoke(main, ["doctor", "--local", *arguments])

    def count_alarms(self) -> int:
        """Count the alarms of the local stack. Those that compute with metrics are not deployed to it."""
        pages = self.cloud.get_client("cloudformation").get_paginator("list_stack_resources")
        resources = pages.paginate(StackName=LOCAL_STACK_NAME).build_full_result()["StackResourceSummaries"]
        return sum(one["ResourceType"] == "AWS::CloudWatch::Alarm" for one in resources)


def test_a_deployed_stack_is_examined_with_a_real_turn(run: Run, cloud: LocalCloud) -> None:
    result = run()
    lines = result.output.splitlines()
    assert result.exit_code == 0, result.output
    assert any(line.startswith("ok       stack: fermata is in ") for line in lines)
    assert any("service: " in line and "stage local" in line for line in lines)
    assert any(line.startswith("ok       turn: A turn ran to its end in ") for line in lines)
    alarms = run.count_alarms()
    (without_values,) = [line for line in lines if f" of {alarms} watch metrics without a value" in line]
    with_values = [line for line in lines if f" of {alarms} are not raised" in line]
    quiet = sum(int(line.split("alarms: ")[1].split()[0]) for line in (*with_values, without_values))
    raised = [line for line in lines if line.startswith("problem  alarms: ")]
    assert quiet + len(raised) == alarms > 0, "each alarm of the stack is counted"
    assert any("Nobody hears of " in line for line in lines)
    assert any(line.startswith("note     alarms: ") and "until the first such event" in line for line in lines)


def test_a_second_examination_works_like_the_first_and_leaves_nothing(run: Run, cloud: LocalCloud) -> None:
    for _ in range(2):
        assert "turn: A turn ran to its end" in run("--url", cloud.url).output
    resources = cloud.resources()
    assert credential_store.list_credentials(resources, DOCTOR) == []
    assert not conversation_store.list_conversations(resources, DOCTOR, "data", cursor=None, limit=10).conversations


def test_a_stack_that_does_not_answer_is_a_problem(run: Run) -> None:
    result = run("--url", "http://127.0.0.1:9")
    assert result.exit_code == 1
    assert "PROBLEM  service: http://127.0.0.1:9 does not answer: " in result.output


def test_a_stack_that_does_not_exist_is_a_problem(run: Run) -> None:
    result = run(stack="nothing")
    assert result.exit_code == 1
    assert "PROBLEM  stack: nothing cannot be examined: " in result.output


def test_an_account_is_examined_before_the_deployment(run: Run) -> None:
    """The local cloud has accounts, any layer, functions and stacks, and no Service Quotas."""
    result = run("--folder", str(ROOT), stack=None)
    lines = result.output.splitlines()
    assert any(line.startswith("ok       parameters: All are allowed; set are Stage=dev") for line in lines)
    assert any(line.startswith("ok       credentials: Account ") for line in lines)
    assert any(line.startswith("ok       layer: arn:aws:lambda:us-east-1:") for line in lines)
    assert any(line.startswith("ok       stack: fermata-dev does not exist yet") for line in lines)
    assert any("Lambda: The account may run " in line for line in lines)
    assert any(line.startswith("note     quotas: The quotas of states are not known: AWS answered ") for line in lines)
    assert result.exit_code == 0, result.output
