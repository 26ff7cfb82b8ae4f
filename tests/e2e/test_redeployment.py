"""Deploy again while turns run and wait, and go back to the versions before. All turns finish."""

import json
import re
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from fermata_client import follow_turn
from local import deploy, template
from local.cloud import LocalCloud
from local.deployed_stack import ALIAS
from tests.e2e import turn_checks
from tests.e2e.chat_session import INSERT_CALL, OK_RESULT, ChatSession
from tests.e2e.demo_model_client import DemoModelClient, slow_text_step, text_step, tool_call_step
from tests.e2e.deployment_parameters import SHORT_START_GRACE, SHORT_TIMINGS, function_folders
from tests.e2e.fault_rules import FaultRules
from tests.e2e.stream_reader import Event
from tests.waiting import BACKSTOP_SECONDS

WORDS = " ".join(f"word{number}" for number in range(60))


def live_versions(cloud: LocalCloud) -> dict[str, str]:
    """Return the version that the alias of each function points to, by the function's folder."""
    functions = cloud.get_client("lambda")
    return {
        folder: functions.get_alias(FunctionName=cloud.function_name(folder), Name=ALIAS)["FunctionVersion"]
        for folder in function_folders()
    }


def move_aliases(cloud: LocalCloud, versions: dict[str, str]) -> None:
    """Point the aliases to these versions, as CodeDeploy does when an alarm rings during a rollout."""
    for folder, version in versions.items():
        name = cloud.function_name(folder)
        cloud.get_client("lambda").update_alias(FunctionName=name, Name=ALIAS, FunctionVersion=version)


def test_a_streaming_and_a_paused_turn_survive_a_deployment(
    new_session: Callable[..., ChatSession], cloud: LocalCloud, faults: FaultRules
) -> None:
    """The streaming turn stands still in mid-text during the deployment."""
    streaming, paused = new_session(), new_session()
    paused.start_turn(tool_call_step(INSERT_CALL), text_step("Here I am again.")).wait_for_event("toolRequest")
    deployed = threading.Event()

    def answer(_: Event) -> dict[str, Any]:
        assert deployed.wait(BACKSTOP_SECONDS)
        return OK_RESULT

    with ThreadPoolExecutor(2) as pool, faults.hold_call("dynamodb.PutItem", contains="word30") as gate:
        streaming.start_turn(slow_text_step(WORDS, seconds=1)).wait_for_event("text")
        followed = [
            pool.submit(follow_turn, session.client, session.bridge, executor=answer) for session in (streaming, paused)
        ]
        gate.wait_reached()
        cloud.redeploy(parameters={"HeartbeatSeconds": 241, "FlushMs": 31})
        gate.open()
        deployed.set()
        views = [one.result(BACKSTOP_SECONDS).view for one in followed]
    assert [view.text for view in views] == [WORDS, "Here I am again."]
    assert len(streaming.model_requests()) == 1
    assert [turn_checks.check_turn(streaming), turn_checks.check_turn(paused)] == views


def test_a_changed_parameter_reaches_the_version_that_every_function_is_invoked_with(cloud: LocalCloud) -> None:
    before = live_versions(cloud)
    cloud.redeploy(parameters={"FlushMs": 32})
    after = live_versions(cloud)
    assert all(int(after[folder]) > int(before[folder]) for folder in before)
    assert {cloud.get_function_variables(folder)["FLUSH_MS"] for folder in before} == {"32"}
    cloud.redeploy(parameters={"FlushMs": 32})
    assert live_versions(cloud) == after, "a deployment without a change publishes nothing"


def test_a_turn_that_a_newer_version_began_finishes_on_the_version_before_it(
    new_session: Callable[..., ChatSession], cloud: LocalCloud
) -> None:
    older = live_versions(cloud)
    cloud.redeploy(environment={"ONLY_IN_TESTS": "newer"})
    newer = live_versions(cloud)
    session = new_session()
    reader = session.start_turn(tool_call_step(INSERT_CALL), text_step("On the version before."))
    reader.wait_for_event("toolRequest")
    move_aliases(cloud, older)
    try:
        view = follow_turn(session.client, session.bridge, executor=lambda _: OK_RESULT).view
        assert "ONLY_IN_TESTS" not in cloud.get_function_variables("round")
    finally:
        move_aliases(cloud, newer)
    assert view.text == "On the version before."
    assert len(session.model_requests()) == 2
    assert turn_checks.check_turn(session) == view


def remove_aliases(document: Any) -> Any:
    """Let everything in a template invoke functions, and not aliases of them."""
    properties = [document["Globals"]["Function"]]
    properties += [one["Properties"] for one in template.resources_of_type(document, "Function").values()]
    for each in properties:
        for name in ("AutoPublishAlias", "AutoPublishAliasAllProperties", "VersionDescription", "DeploymentPreference"):
            each.pop(name, None)
    text = re.sub(r'\{"Ref": "(\w+)\.Alias"\}', r'{"Fn::GetAtt": ["\1", "Arn"]}', json.dumps(document))
    return json.loads(text)


@pytest.mark.cloud
def test_turns_that_run_and_wait_survive_the_upgrade_of_a_stack_from_before_aliases(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their executions go on invoking the functions without the alias (decision 0253)."""
    faults = FaultRules(tmp_path / "faults")
    faults.folder.mkdir()
    remove_rollouts = deploy.remove_rollouts
    monkeypatch.setattr(deploy, "remove_rollouts", remove_aliases)
    monkeypatch.setattr("local.deployed_stack.ALIAS", "$LATEST")
    environment = SHORT_START_GRACE | {"FERMATA_FAULTS": faults.folder}
    with LocalCloud(tmp_path / "cloud", parameters=SHORT_TIMINGS, environment=environment) as cloud:
        assert not cloud.get_client("lambda").list_aliases(FunctionName=cloud.function_name("round"))["Aliases"]
        assert cloud.model is not None
        model = DemoModelClient(cloud.model.url)
        streaming, paused = (ChatSession(cloud, cloud.resources(), model, cloud.token) for _ in range(2))
        paused.start_turn(tool_call_step(INSERT_CALL), text_step("Here I am again.")).wait_for_event("toolRequest")
        with ThreadPoolExecutor(1) as pool, faults.hold_call("dynamodb.PutItem", contains="word30") as gate:
            streaming.start_turn(slow_text_step(WORDS, seconds=1)).wait_for_event("text")
            followed = pool.submit(follow_turn, streaming.client, streaming.bridge)
            gate.wait_reached()
            monkeypatch.setattr(deploy, "remove_rollouts", remove_rollouts)
            cloud.redeploy()
            gate.open()
            streamed = followed.result(BACKSTOP_SECONDS).view
        assert live_versions(cloud)["round"] == "1"
        waited = follow_turn(paused.client, paused.bridge, executor=lambda _: OK_RESULT).view
        assert [streamed.text, waited.text] == [WORDS, "Here I am again."]
        assert len(streaming.model_requests()) == 1
        assert [turn_checks.check_turn(streaming), turn_checks.check_turn(paused)] == [streamed, waited]
        for session in (streaming, paused):
            session.close()
        model.close()
