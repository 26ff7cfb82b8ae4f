"""Test turns that wait for a browser: holds, late and missing answers, and heartbeats.

Each class has a cloud of its own, with clocks that are too short for other tests.
"""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, ClassVar

import pytest

from local.cloud import LocalCloud
from local.processes import ROOT
from local.seed import LocalResources
from tests.e2e import turn_checks
from tests.e2e.chat_session import (
    DELETE_CALL,
    INSERT_CALL,
    OK_RESULT,
    READ_CALL,
    ChatSession,
    open_http,
    result_text,
)
from tests.e2e.demo_model_client import (
    DemoModelClient,
    slow_text_step,
    text_step,
    tool_call_step,
    unfinished_text_step,
)
from tests.e2e.deployment_parameters import SHORT_START_GRACE, SHORT_TIMINGS
from tests.e2e.fault_rules import FaultRules
from tests.e2e.stream_reader import Event
from tests.e2e.test_attempts import invocation_payload
from tests.waiting import BACKSTOP_SECONDS, wait_until


@pytest.fixture(scope="class")
def faults_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("faults")


@pytest.fixture(scope="class")
def cloud(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, faults_folder: Path
) -> Iterator[LocalCloud]:
    timings = SHORT_TIMINGS | request.cls.TIMINGS
    environment = SHORT_START_GRACE | {"FERMATA_FAULTS": faults_folder}
    with LocalCloud(tmp_path_factory.mktemp("cloud"), parameters=timings, environment=environment) as cloud:
        load_functions(cloud)
        yield cloud


@pytest.fixture(scope="class")
def resources(cloud: LocalCloud) -> LocalResources:
    return cloud.resources()


@pytest.fixture(scope="class")
def model(cloud: LocalCloud) -> Iterator[DemoModelClient]:
    assert cloud.model is not None
    model = DemoModelClient(cloud.model.url)
    yield model
    model.close()


def load_functions(cloud: LocalCloud) -> None:
    """Invoke the functions once: the first invocation takes long, and these clocks are short."""
    for function in ("round", "store_hold_token"):
        cloud.invoke_function(function, json.loads((ROOT / f"events/{function}.json").read_text()))
    with open_http(cloud) as http:
        answer = {"bridgeId": "x", "requestId": "1.0.x", "result": OK_RESULT}
        assert http.post("/tool-result", json=answer).status_code == 404


class TestAHold:
    """A browser may take longer than the heartbeat timeout, so the workflow holds the turn."""

    TIMINGS: ClassVar = {"HeartbeatSeconds": 60, "BrowserWaitSeconds": 240}

    def test_an_answer_ends_the_hold(self, session: ChatSession) -> None:
        held: list[str] = []

        def thinks(request: Event) -> dict[str, Any]:
            session.bridge = request["effectKey"].partition("/")[0]
            wait_until(lambda: "Hold" in entered_states(session), "the turn is held")
            held.append(request["requestId"])
            return OK_RESULT

        outcome = session.run_turn(tool_call_step(INSERT_CALL), text_step("Worth the wait."), executor=thinks)
        assert held
        assert outcome.view.text == "Worth the wait."
        assert turn_checks.check_turn(session) == outcome.view  # it waits for the execution, which ends after the turn
        assert entered_states(session)[-6:] == ["Next", "Hold", "Next", "RunRound", "Next", "Finished"]

    def test_cancelled_while_held_the_execution_ends_before_the_hold_does(self, session: ChatSession) -> None:
        session.start_turn(tool_call_step(INSERT_CALL), text_step("Never."))
        wait_until(lambda: "Hold" in entered_states(session), "the turn is held")
        assert turn_checks.load_current_pause(session).callback_token
        session.cancel_turn()
        turn_checks.wait_for_executions(session.cloud, session.bridge)
        assert "TaskTimedOut" not in event_types(session)
        turn_checks.check_turn(session, ends="cancelled")

    def test_after_the_holding_function_dies_its_successor_holds(
        self, session: ChatSession, faults: FaultRules
    ) -> None:
        with faults.expect_fault("dynamodb.PutItem", "exit", contains="p#000001"):
            session.start_turn(tool_call_step(INSERT_CALL), text_step("Still here."))
            wait_until(lambda: entered_states(session).count("Hold") == 1, "the turn is held")
        (asked,) = session.client.get_bridge(session.bridge)["pending"]
        session.answer_request(asked)
        wait_until(lambda: session.client.get_bridge(session.bridge)["status"] == "done", "the turn ends")
        turn_checks.check_turn(session)


class TestAHoldThatEnds:
    TIMINGS: ClassVar = {
        "HeartbeatSeconds": 5,
        "BrowserWaitSeconds": 7,
        "UnansweredCalls": "tell_model",
        "ReaderSeconds": 1,
    }

    def test_without_an_answer_the_model_gets_an_error_and_continues(self, session: ChatSession) -> None:
        """The client reconnects every second, when its reader's time is over."""
        requests: list[Event] = []

        def ignore_request(request: Event) -> dict[str, Any]:
            requests.append(request)
            wait_until(
                lambda: session.client.get_bridge(request["effectKey"].partition("/")[0])["pending"] == [], "it expires"
            )
            return OK_RESULT

        outcome = session.run_turn(
            tool_call_step(READ_CALL, INSERT_CALL), text_step("I will manage alone."), executor=ignore_request
        )
        assert outcome.status == "done"
        assert outcome.reconnect_count >= 1
        assert [badge.state for badge in outcome.view.tool_calls] == ["failed", "failed"]
        assert all("did not answer" in result_text(block) for block in session.tool_results())
        assert len(requests) == 1
        assert session.post_answer(requests[0]).status_code == 404
        assert turn_checks.check_turn(session) == outcome.view


class TestAHeartbeatTimeout:
    """The workflow runs the round again when no heartbeat comes in time, and the round decides what to do."""

    TIMINGS: ClassVar = {"HeartbeatSeconds": 5, "BrowserWaitSeconds": 4, "UnansweredCalls": "fail"}

    def test_without_an_answer_the_turn_ends_with_an_error(self, session: ChatSession) -> None:
        reader = session.start_turn(tool_call_step(INSERT_CALL, DELETE_CALL), text_step("Never."))
        request = reader.wait_for_event("toolRequest")
        reader.wait_for_end()
        last = reader.events[-1]
        assert (last["code"], last["retryable"]) == ("no_answer", True)
        assert "insertHtml" in last["message"]
        assert session.post_answer(request).status_code == 404
        assert len(session.model_requests()) == 1
        turn_checks.check_turn(session, reader, ends="error")

    def test_an_answer_without_a_wake_up_is_found_after_the_timeout(
        self, session: ChatSession, faults: FaultRules
    ) -> None:
        """The answering function dies before it can wake the turn, and the browser does not repeat its answer."""
        reader = session.start_turn(tool_call_step(INSERT_CALL), text_step("Found."))
        request = reader.wait_for_event("toolRequest")
        with faults.expect_fault("stepfunctions.SendTaskSuccess", "exit"):
            assert session.post_answer(request).status_code == 502
        reader.wait_for_end()
        assert turn_checks.check_turn(session, reader).text == "Found."

    def test_a_superseded_attempt_leaves_its_token_to_the_timeout_and_the_execution_finishes(
        self, session: ChatSession, cloud: LocalCloud
    ) -> None:
        reader = session.start_turn(unfinished_text_step(" ".join(["old"] * 100)), text_step("The newest."))
        reader.wait_for_event("text")
        payload = invocation_payload(session, "2999-01-01T00:00:00.000Z")
        with ThreadPoolExecutor(1) as pool:
            newest = pool.submit(cloud.invoke_function, "round", payload)
            assert newest.result(BACKSTOP_SECONDS) is None
        reader.wait_for_end()
        assert turn_checks.check_turn(session, reader).text == "The newest."
        session.model.wait_for_close(session.script, number=0)

    def test_a_round_that_takes_longer_sends_heartbeats(self, session: ChatSession) -> None:
        """Without them it would time out. On a busy machine one may come too late, and the next round counts."""

        def is_kept_alive() -> bool:
            reader = session.start_turn(slow_text_step("one two three four five", seconds=7))
            reader.wait_for_end()
            turn_checks.check_turn(session, reader)
            return "TaskTimedOut" not in event_types(session)

        wait_until(is_kept_alive, "heartbeats keep a round alive")


def read_history(session: ChatSession) -> list[dict[str, Any]]:
    """Read the history of the turn's first execution."""
    execution = turn_checks.describe_executions(session.cloud, session.bridge)[f"{session.bridge}-1"]
    return turn_checks.get_history(session.cloud, execution["executionArn"])


def event_types(session: ChatSession) -> set[str]:
    return {event["type"] for event in read_history(session)}


def entered_states(session: ChatSession) -> list[str]:
    """List the states that the turn's first execution has entered."""
    entered = [event for event in read_history(session) if event["type"].endswith("StateEntered")]
    return [event["stateEnteredEventDetails"]["name"] for event in entered]
