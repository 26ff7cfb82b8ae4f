"""Something outside our code ends an execution, or never starts it: the client hears of it and the thread is free."""

import io
import zipfile
from collections.abc import Callable, Iterator

import pytest

from local import deploy
from local.cloud import LocalCloud
from local.processes import ROOT
from tests.e2e import turn_checks
from tests.e2e.conversation_driver import INSERT_CALL, ConversationDriver, open_http
from tests.e2e.demo_model_client import text_step, tool_call_step, unfinished_text_step
from tests.e2e.fault_rules import FaultRules
from tests.waiting import wait_until

LONG = " ".join(f"word{number}" for number in range(100))
BROKEN = {
    "cannot be imported": "import a_package_that_nobody_has\n",
    "dies whenever it is asked": "import os\n\n\ndef handler(event, context):\n    os._exit(1)\n",
    "fails whenever it is asked": "def handler(event, context):\n    raise RuntimeError('no')\n",
}


def test_stopped_by_an_operator_while_paused_the_client_gets_an_error(
    talk: ConversationDriver, cloud: LocalCloud
) -> None:
    reader = talk.start_turn(tool_call_step(INSERT_CALL), text_step("Never."))
    request = reader.wait_for_event("toolRequest")
    cloud.stop_execution(f"{talk.bridge}-1")
    reader.wait_for_end()
    assert reader.event_types[-3:] == ["toolResult", "usage", "error"]
    assert reader.events[-1]["code"] == "aborted"
    assert talk.post_answer(request).status_code == 404
    turn_checks.check_turn(talk, reader, ends="error")


def test_stopped_by_an_operator_in_mid_text_the_provider_is_hung_up_on(
    talk: ConversationDriver, cloud: LocalCloud
) -> None:
    reader = talk.start_turn(unfinished_text_step(LONG))
    reader.wait_for_text(10)
    cloud.stop_execution(f"{talk.bridge}-1")
    reader.wait_for_end()
    talk.model.wait_for_close(talk.script)
    assert LONG.startswith(turn_checks.check_turn(talk, reader, ends="error").text)


def test_a_turn_that_never_started_is_started_by_the_sweep(
    talk: ConversationDriver, cloud: LocalCloud, faults: FaultRules
) -> None:
    with faults.expect_fault("stepfunctions.StartExecution", "error:ThrottlingException"):
        reader = talk.start_turn(text_step("Better late."))
    assert not turn_checks.describe_executions(cloud, talk.bridge)
    wait_until(
        lambda: cloud.run_recovery_sweep() >= 0 and turn_checks.describe_executions(cloud, talk.bridge),
        "the sweep starts it",
    )
    reader.wait_for_end()
    assert turn_checks.check_turn(talk, reader).text == "Better late."


def test_a_turn_that_never_started_is_started_by_the_next_prompt_that_meets_it(
    talk: ConversationDriver, faults: FaultRules
) -> None:
    with faults.expect_fault("stepfunctions.StartExecution", "error:ThrottlingException"):
        reader = talk.start_turn(text_step("Better late."))

    def met() -> bool:
        if turn_checks.describe_executions(talk.cloud, talk.bridge):
            return True  # the sweep met it first
        with open_http(talk.cloud) as bare:
            body = {"conversationId": talk.conversation, "prompt": "Hello?"}
            assert bare.post("/chat/site", json=body, headers={"accept": "application/json"}).status_code == 409
        return bool(turn_checks.describe_executions(talk.cloud, talk.bridge))

    wait_until(met, "a prompt starts it")
    reader.wait_for_end()
    assert turn_checks.check_turn(talk, reader).text == "Better late."


def test_a_turn_that_never_started_can_be_cancelled_and_stays_so(
    talk: ConversationDriver, cloud: LocalCloud, faults: FaultRules
) -> None:
    with faults.expect_fault("stepfunctions.StartExecution", "error:ThrottlingException"):
        reader = talk.start_turn(text_step("Never."))
    assert talk.cancel_turn().json()["status"] == "cancelled"
    reader.wait_for_end()
    cloud.run_recovery_sweep()
    assert not turn_checks.describe_executions(cloud, talk.bridge)
    turn_checks.check_turn(talk, reader, ends="cancelled")


def test_the_sweep_leaves_turns_alone_that_are_well(talk: ConversationDriver, cloud: LocalCloud) -> None:
    reader = talk.start_turn(tool_call_step(INSERT_CALL), text_step("Done."))
    request = reader.wait_for_event("toolRequest")
    before = turn_checks.load_current_pause(talk)
    wait_until(lambda: cloud.run_recovery_sweep() >= 1, "the sweep sees the turn")
    assert turn_checks.load_current_pause(talk) == before
    assert list(turn_checks.describe_executions(cloud, talk.bridge)) == [f"{talk.bridge}-1"]
    talk.answer_request(request)
    reader.wait_for_end()
    turn_checks.check_turn(talk, reader)


@pytest.fixture(scope="class")
def round_code(cloud: LocalCloud) -> Iterator[Callable[[str], None]]:
    """Puts other code in the place of the round function's, until the tests of a class are over."""
    functions, name = cloud.get_client("lambda"), cloud.function_name("round")

    def replace(source: str) -> None:
        content = io.BytesIO()
        with zipfile.ZipFile(content, "w") as archive:
            archive.writestr("app.py", source)
        functions.update_function_code(FunctionName=name, ZipFile=content.getvalue())

    yield replace
    functions.update_function_code(FunctionName=name, ZipFile=deploy.zip_folder(ROOT / "functions/round"))


class TestARoundFunctionThatNeverWorks:
    def test_a_paused_turn_ends_with_an_error_when_it_is_answered(
        self, talk: ConversationDriver, round_code: Callable[[str], None]
    ) -> None:
        reader = talk.start_turn(tool_call_step(INSERT_CALL), text_step("Never."))
        request = reader.wait_for_event("toolRequest")
        round_code(BROKEN["dies whenever it is asked"])
        talk.answer_request(request)
        reader.wait_for_end()
        assert reader.event_types[-2:] == ["usage", "error"]
        assert reader.event_types.count("toolResult") == 1

    @pytest.mark.parametrize("how", BROKEN)
    def test_its_turns_end_with_an_error(
        self, talk: ConversationDriver, round_code: Callable[[str], None], how: str
    ) -> None:
        round_code(BROKEN[how])
        reader = talk.start_turn(text_step("Never."))
        reader.wait_for_end()
        assert reader.events[-1]["code"] == "broken"
        assert reader.events[-1]["retryable"] is True
        turn_checks.wait_for_executions(talk.cloud, talk.bridge)
        assert list(turn_checks.describe_executions(talk.cloud, talk.bridge)) == [f"{talk.bridge}-1"]
        assert "activeTurn" not in talk.client.get_conversation(talk.conversation)


def test_when_the_function_works_again_a_conversation_it_failed_goes_on(
    talk: ConversationDriver, cloud: LocalCloud, faults: FaultRules
) -> None:
    with (
        faults.expect_fault("dynamodb.PutItem", "error:AccessDeniedException", contains="roundStarted"),
        faults.expect_fault("dynamodb.PutItem", "error:AccessDeniedException", contains="roundStarted"),
    ):
        reader = talk.start_turn(text_step("Never."))
        reader.wait_for_end()
    assert reader.events[-1]["code"] == "broken"
    turn_checks.check_turn(talk, reader, ends="error")
