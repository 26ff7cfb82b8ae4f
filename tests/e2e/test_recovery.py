"""Something outside our code ends an execution, or never starts it: the client hears of it and the thread is free."""

import io
import zipfile
from collections.abc import Callable, Iterator

import pytest

from local import deploy
from local.cloud import LocalCloud
from local.processes import ROOT
from tests.e2e import checks
from tests.e2e.faults import Faults
from tests.e2e.model import calls, says, slowly
from tests.e2e.talk import INSERT, Talk, http
from tests.local.lab import until

LONG = " ".join(f"word{number}" for number in range(100))
BROKEN = {
    "cannot be imported": "import a_package_that_nobody_has\n",
    "dies whenever it is asked": "import os\n\n\ndef handler(event, context):\n    os._exit(1)\n",
    "fails whenever it is asked": "def handler(event, context):\n    raise RuntimeError('no')\n",
}


def test_stopped_by_an_operator_while_paused_the_client_gets_an_error(talk: Talk, cloud: LocalCloud) -> None:
    reader = talk.start(calls(INSERT), says("Never."))
    request = reader.wait("toolRequest")
    cloud.stop_execution(f"{talk.bridge}-1")
    reader.finish()
    assert reader.kinds[-3:] == ["toolResult", "usage", "error"]
    assert reader.events[-1]["code"] == "aborted"
    assert talk.post_answer(request).status_code == 404
    checks.sound(talk, reader, ends="error")


def test_stopped_by_an_operator_in_mid_text_the_provider_is_hung_up_on(talk: Talk, cloud: LocalCloud) -> None:
    reader = talk.start(slowly(LONG, seconds=20))
    reader.wait_for_text(10)
    cloud.stop_execution(f"{talk.bridge}-1")
    reader.finish()
    talk.model.closed(talk.script, seconds=3)
    assert LONG.startswith(checks.sound(talk, reader, ends="error").text)


def test_a_turn_that_never_started_is_started_by_the_sweep(talk: Talk, cloud: LocalCloud, faults: Faults) -> None:
    with faults.once("stepfunctions.StartExecution", "error:ThrottlingException"):
        reader = talk.start(says("Better late."))
    assert not checks.executions(cloud, talk.bridge)
    until(lambda: cloud.recover() >= 0 and checks.executions(cloud, talk.bridge), "the sweep starts it")
    reader.finish()
    assert checks.sound(talk, reader).text == "Better late."


def test_a_turn_that_never_started_is_started_by_the_next_prompt_that_meets_it(talk: Talk, faults: Faults) -> None:
    with faults.once("stepfunctions.StartExecution", "error:ThrottlingException"):
        reader = talk.start(says("Better late."))

    def met() -> bool:
        if checks.executions(talk.cloud, talk.bridge):
            return True  # the sweep met it first
        with http(talk.cloud) as bare:
            body = {"conversationId": talk.conversation, "prompt": "Hello?"}
            assert bare.post("/chat/site", json=body, headers={"accept": "application/json"}).status_code == 409
        return bool(checks.executions(talk.cloud, talk.bridge))

    until(met, "a prompt starts it")
    reader.finish()
    assert checks.sound(talk, reader).text == "Better late."


def test_a_turn_that_never_started_can_be_cancelled_and_stays_so(talk: Talk, cloud: LocalCloud, faults: Faults) -> None:
    with faults.once("stepfunctions.StartExecution", "error:ThrottlingException"):
        reader = talk.start(says("Never."))
    assert talk.cancel().json()["status"] == "cancelled"
    reader.finish()
    cloud.recover()
    assert not checks.executions(cloud, talk.bridge)
    checks.sound(talk, reader, ends="cancelled")


def test_the_sweep_leaves_turns_alone_that_are_well(talk: Talk, cloud: LocalCloud) -> None:
    reader = talk.start(calls(INSERT), says("Done."))
    request = reader.wait("toolRequest")
    before = checks.pause(talk)
    until(lambda: cloud.recover() >= 1, "the sweep sees the turn")
    assert checks.pause(talk) == before
    assert list(checks.executions(cloud, talk.bridge)) == [f"{talk.bridge}-1"]
    talk.answer(request)
    reader.finish()
    checks.sound(talk, reader)


@pytest.fixture(scope="class")
def round_code(cloud: LocalCloud) -> Iterator[Callable[[str], None]]:
    """Puts other code in the place of the round function's, until the tests of a class are over."""
    functions, name = cloud.client("lambda"), cloud.function("round")

    def replace(source: str) -> None:
        content = io.BytesIO()
        with zipfile.ZipFile(content, "w") as archive:
            archive.writestr("app.py", source)
        functions.update_function_code(FunctionName=name, ZipFile=content.getvalue())

    yield replace
    functions.update_function_code(FunctionName=name, ZipFile=deploy.zipped(ROOT / "functions/round"))


class TestARoundFunctionThatNeverWorks:
    def test_a_paused_turn_ends_with_an_error_when_it_is_answered(
        self, talk: Talk, round_code: Callable[[str], None]
    ) -> None:
        reader = talk.start(calls(INSERT), says("Never."))
        request = reader.wait("toolRequest")
        round_code(BROKEN["dies whenever it is asked"])
        talk.answer(request)
        reader.finish()
        assert reader.kinds[-2:] == ["usage", "error"]
        assert reader.kinds.count("toolResult") == 1

    @pytest.mark.parametrize("how", BROKEN)
    def test_its_turns_end_with_an_error(self, talk: Talk, round_code: Callable[[str], None], how: str) -> None:
        round_code(BROKEN[how])
        reader = talk.start(says("Never."))
        reader.finish()
        assert reader.events[-1]["code"] == "broken"
        assert reader.events[-1]["retryable"] is True
        checks.executions_are_over(talk.cloud, talk.bridge)
        assert list(checks.executions(talk.cloud, talk.bridge)) == [f"{talk.bridge}-1"]
        assert "activeTurn" not in talk.client.conversation(talk.conversation)


def test_when_the_function_works_again_a_conversation_it_failed_goes_on(
    talk: Talk, cloud: LocalCloud, faults: Faults
) -> None:
    with (
        faults.once("dynamodb.PutItem", "error:AccessDeniedException", contains="roundStarted"),
        faults.once("dynamodb.PutItem", "error:AccessDeniedException", contains="roundStarted"),
    ):
        reader = talk.start(says("Never."))
        reader.finish()
    assert reader.events[-1]["code"] == "broken"
    checks.sound(talk, reader, ends="error")
