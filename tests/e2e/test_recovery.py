"""Test executions that are stopped, fail or never start: the client gets an error and the conversation is free."""

import io
import zipfile
from collections.abc import Callable, Iterator

import pytest

from local import deploy
from local.cloud import LocalCloud
from local.deployed_stack import ALIAS
from local.processes import ROOT
from tests.e2e import turn_checks
from tests.e2e.chat_session import INSERT_CALL, ChatSession, open_http
from tests.e2e.demo_model_client import text_step, tool_call_step, unfinished_text_step
from tests.e2e.fault_rules import FaultRules
from tests.waiting import wait_until

LONG = " ".join(f"word{number}" for number in range(100))
BROKEN = {
    "cannot be imported": "import a_package_that_nobody_has\n",
    "dies whenever it is asked": "import os\n\n\ndef handler(event, context):\n    os._exit(1)\n",
    "fails whenever it is asked": "def handler(event, context):\n    raise RuntimeError('no')\n",
}


def test_stopped_by_an_operator_while_paused_the_client_gets_an_error(session: ChatSession, cloud: LocalCloud) -> None:
    reader = session.start_turn(tool_call_step(INSERT_CALL), text_step("Never."))
    request = reader.wait_for_event("toolRequest")
    cloud.stop_execution(f"{session.bridge}-1")
    reader.wait_for_end()
    assert reader.event_types[-3:] == ["toolResult", "usage", "error"]
    assert reader.events[-1]["code"] == "aborted"
    assert session.post_answer(request).status_code == 404
    turn_checks.check_turn(session, reader, ends="error")


def test_stopped_by_an_operator_in_mid_text_the_connection_to_the_provider_is_closed(
    session: ChatSession, cloud: LocalCloud
) -> None:
    reader = session.start_turn(unfinished_text_step(LONG))
    reader.wait_for_text(10)
    cloud.stop_execution(f"{session.bridge}-1")
    reader.wait_for_end()
    session.model.wait_for_close(session.script)
    assert LONG.startswith(turn_checks.check_turn(session, reader, ends="error").text)


@pytest.mark.usefixtures("without_sweep")
def test_a_turn_that_never_started_is_started_by_the_sweep(
    session: ChatSession, cloud: LocalCloud, faults: FaultRules
) -> None:
    with faults.expect_fault("stepfunctions.StartExecution", "error:ThrottlingException"):
        reader = session.start_turn(text_step("Better late."))
    assert not turn_checks.describe_executions(cloud, session.bridge)
    wait_until(
        lambda: cloud.run_recovery_sweep() >= 0 and turn_checks.describe_executions(cloud, session.bridge),
        "the sweep starts it",
    )
    reader.wait_for_end()
    assert turn_checks.check_turn(session, reader).text == "Better late."


def test_a_turn_that_never_started_is_started_by_the_next_prompt(session: ChatSession, faults: FaultRules) -> None:
    with faults.expect_fault("stepfunctions.StartExecution", "error:ThrottlingException"):
        reader = session.start_turn(text_step("Better late."))

    def met() -> bool:
        if turn_checks.describe_executions(session.cloud, session.bridge):
            return True  # the sweep met it first
        with open_http(session.cloud) as bare:
            body = {"conversationId": session.conversation, "prompt": "Hello?"}
            assert bare.post("/chat/site", json=body, headers={"accept": "application/json"}).status_code == 409
        return bool(turn_checks.describe_executions(session.cloud, session.bridge))

    wait_until(met, "a prompt starts it")
    reader.wait_for_end()
    assert turn_checks.check_turn(session, reader).text == "Better late."


@pytest.mark.usefixtures("without_sweep")
def test_a_turn_that_never_started_can_be_cancelled_and_stays_so(
    session: ChatSession, cloud: LocalCloud, faults: FaultRules
) -> None:
    with faults.expect_fault("stepfunctions.StartExecution", "error:ThrottlingException"):
        reader = session.start_turn(text_step("Never."))
    assert session.cancel_turn().json()["status"] == "cancelled"
    reader.wait_for_end()
    cloud.run_recovery_sweep()
    assert not turn_checks.describe_executions(cloud, session.bridge)
    turn_checks.check_turn(session, reader, ends="cancelled")


def test_the_sweep_does_not_change_running_turns(session: ChatSession, cloud: LocalCloud) -> None:
    reader = session.start_turn(tool_call_step(INSERT_CALL), text_step("Done."))
    request = reader.wait_for_event("toolRequest")
    before = turn_checks.load_current_pause(session)
    wait_until(lambda: cloud.run_recovery_sweep() >= 1, "the sweep sees the turn")
    assert turn_checks.load_current_pause(session) == before
    assert list(turn_checks.describe_executions(cloud, session.bridge)) == [f"{session.bridge}-1"]
    session.answer_request(request)
    reader.wait_for_end()
    turn_checks.check_turn(session, reader)


@pytest.fixture(scope="class")
def round_code(cloud: LocalCloud) -> Iterator[Callable[[str], None]]:
    """Publish another version of the round function until the end of the class."""
    functions, name = cloud.get_client("lambda"), cloud.function_name("round")

    def move_alias(version: str) -> None:
        functions.update_alias(FunctionName=name, Name=ALIAS, FunctionVersion=version)

    def replace(source: str) -> None:
        content = io.BytesIO()
        with zipfile.ZipFile(content, "w") as archive:
            archive.writestr("app.py", source)
        new = functions.update_function_code(FunctionName=name, ZipFile=content.getvalue(), Publish=True)
        move_alias(new["Version"])

    before = functions.get_alias(FunctionName=name, Name=ALIAS)["FunctionVersion"]
    yield replace
    functions.update_function_code(FunctionName=name, ZipFile=deploy.zip_folder(ROOT / "functions/round"))
    move_alias(before)


class TestARoundFunctionThatNeverWorks:
    def test_a_paused_turn_ends_with_an_error_when_it_is_answered(
        self, session: ChatSession, round_code: Callable[[str], None]
    ) -> None:
        reader = session.start_turn(tool_call_step(INSERT_CALL), text_step("Never."))
        request = reader.wait_for_event("toolRequest")
        round_code(BROKEN["dies whenever it is asked"])
        session.answer_request(request)
        reader.wait_for_end()
        assert reader.event_types[-2:] == ["usage", "error"]
        assert reader.event_types.count("toolResult") == 1

    @pytest.mark.parametrize("how", BROKEN)
    def test_its_turns_end_with_an_error(
        self, session: ChatSession, round_code: Callable[[str], None], how: str
    ) -> None:
        round_code(BROKEN[how])
        reader = session.start_turn(text_step("Never."))
        reader.wait_for_end()
        assert reader.events[-1]["code"] == "broken"
        assert reader.events[-1]["retryable"] is True
        turn_checks.wait_for_executions(session.cloud, session.bridge)
        assert list(turn_checks.describe_executions(session.cloud, session.bridge)) == [f"{session.bridge}-1"]
        assert "activeTurn" not in session.client.get_conversation(session.conversation)


def test_a_conversation_continues_after_its_function_is_repaired(
    session: ChatSession, cloud: LocalCloud, faults: FaultRules
) -> None:
    with (
        faults.expect_fault("dynamodb.PutItem", "error:AccessDeniedException", contains="roundStarted"),
        faults.expect_fault("dynamodb.PutItem", "error:AccessDeniedException", contains="roundStarted"),
    ):
        reader = session.start_turn(text_step("Never."))
        reader.wait_for_end()
    assert reader.events[-1]["code"] == "broken"
    turn_checks.check_turn(session, reader, ends="error")
