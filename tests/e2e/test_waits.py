"""Nobody answers, somebody answers late, and the alarm clock that only ever wakes the round up to look."""

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from local.cloud import LocalCloud
from local.processes import ROOT
from tests.e2e import turn_checks
from tests.e2e.conversation_driver import (
    DELETE_CALL,
    INSERT_CALL,
    OK_RESULT,
    READ_CALL,
    ConversationDriver,
    open_http,
    result_text,
)
from tests.e2e.demo_model_client import slow_text_step, text_step, tool_call_step
from tests.e2e.fault_rules import FaultRules
from tests.e2e.stream_reader import Event
from tests.e2e.test_attempts import invocation_payload
from tests.waiting import wait_until


@pytest.fixture(scope="class")
def patient(cloud: LocalCloud) -> None:
    """A browser may take longer than the alarm clock, so the workflow holds the turn."""
    cloud.redeploy(HeartbeatSeconds=2, BrowserWaitSeconds=4, UnansweredCalls="tell_model", ReaderSeconds=1)
    warm_up(cloud)


@pytest.fixture(scope="class")
def impatient(cloud: LocalCloud) -> None:
    cloud.redeploy(HeartbeatSeconds=3, BrowserWaitSeconds=2.5, UnansweredCalls="fail", ReaderSeconds=840)
    warm_up(cloud)


def warm_up(cloud: LocalCloud) -> None:
    """What is deployed anew takes its time at first, and these clocks are short."""
    for function in ("round", "hold"):
        cloud.invoke_function(function, json.loads((ROOT / f"events/{function}.json").read_text()))
    with open_http(cloud) as bare:
        assert (
            bare.post("/tool-result", json={"bridgeId": "x", "requestId": "1.0.x", "result": OK_RESULT}).status_code
            == 404
        )


@pytest.mark.usefixtures("patient")
class TestAHold:
    def test_an_answer_that_comes_after_the_clock_would_have_rung_is_in_time(self, talk: ConversationDriver) -> None:
        held: list[str] = []

        def thinks(request: Event) -> dict[str, Any]:
            talk.bridge = request["effectKey"].partition("/")[0]
            wait_until(lambda: "Hold" in entered_states(talk), "the turn is held")
            held.append(request["requestId"])
            return OK_RESULT

        outcome = talk.run_turn(tool_call_step(INSERT_CALL), text_step("Worth the wait."), executor=thinks)
        assert held
        assert outcome.view.text == "Worth the wait."
        assert entered_states(talk)[-6:] == ["Next", "Hold", "Next", "RunRound", "Next", "Finished"]
        assert turn_checks.check_turn(talk) == outcome.view

    def test_when_nobody_answers_the_model_is_told_and_goes_on(self, talk: ConversationDriver) -> None:
        """So it is set here; and the client reconnects every second, when its reader's time is over."""
        requests: list[Event] = []

        def nobody(request: Event) -> dict[str, Any]:
            requests.append(request)
            wait_until(
                lambda: talk.client.get_bridge(request["effectKey"].partition("/")[0])["pending"] == [], "it expires"
            )
            return OK_RESULT

        outcome = talk.run_turn(
            tool_call_step(READ_CALL, INSERT_CALL), text_step("I will manage alone."), executor=nobody
        )
        assert outcome.status == "done"
        assert outcome.reconnect_count >= 1
        assert [badge.state for badge in outcome.view.tool_calls] == ["failed", "failed"]
        assert all("did not answer" in result_text(block) for block in talk.tool_results())
        assert len(requests) == 1
        assert talk.post_answer(requests[0]).status_code == 404
        assert turn_checks.check_turn(talk) == outcome.view

    def test_cancelled_while_held_the_execution_ends_at_once(self, talk: ConversationDriver) -> None:
        talk.start_turn(tool_call_step(INSERT_CALL), text_step("Never."))
        wait_until(lambda: "Hold" in entered_states(talk), "the turn is held")
        first = turn_checks.load_current_pause(talk).token
        talk.cancel_turn()
        turn_checks.wait_for_executions(talk.cloud, talk.bridge, timeout_seconds=2)
        assert first
        turn_checks.check_turn(talk, ends="cancelled")

    def test_the_holding_function_dies_and_its_successor_holds(
        self, talk: ConversationDriver, faults: FaultRules
    ) -> None:
        with faults.expect_fault("dynamodb.PutItem", "exit", contains="p#000001"):
            talk.start_turn(tool_call_step(INSERT_CALL), text_step("Still here."))
            wait_until(lambda: entered_states(talk).count("Hold") == 1, "the turn is held")
        (asked,) = talk.client.get_bridge(talk.bridge)["pending"]
        talk.answer_request(asked)
        wait_until(lambda: talk.client.get_bridge(talk.bridge)["status"] == "done", "the turn ends")
        turn_checks.check_turn(talk)


@pytest.mark.usefixtures("impatient")
class TestAnAlarmClock:
    def test_when_nobody_answers_the_turn_ends_with_an_error_and_a_late_answer_is_a_404(
        self, talk: ConversationDriver
    ) -> None:
        reader = talk.start_turn(tool_call_step(INSERT_CALL, DELETE_CALL), text_step("Never."))
        request = reader.wait_for_event("toolRequest")
        reader.wait_for_end()
        last = reader.events[-1]
        assert (last["code"], last["retryable"]) == ("no_answer", True)
        assert "insertHtml" in last["message"]
        assert talk.post_answer(request).status_code == 404
        assert len(talk.model_requests()) == 1
        turn_checks.check_turn(talk, reader, ends="error")

    def test_an_answer_that_woke_nobody_is_found_when_the_clock_rings(
        self, talk: ConversationDriver, faults: FaultRules
    ) -> None:
        """The answering function died before it could say so, and its browser never came back."""
        reader = talk.start_turn(tool_call_step(INSERT_CALL), text_step("Found."))
        request = reader.wait_for_event("toolRequest")
        with faults.expect_fault("stepfunctions.SendTaskSuccess", "exit"):
            assert talk.post_answer(request).status_code == 502
        reader.wait_for_end()
        assert turn_checks.check_turn(talk, reader).text == "Found."

    def test_a_superseded_attempt_leaves_its_token_to_the_clock_and_the_execution_finishes(
        self, talk: ConversationDriver, cloud: LocalCloud
    ) -> None:
        reader = talk.start_turn(slow_text_step(" ".join(["old"] * 100), seconds=20), text_step("The newest."))
        reader.wait_for_event("text")
        with ThreadPoolExecutor(1) as pool:
            assert (
                pool.submit(
                    cloud.invoke_function, "round", invocation_payload(talk, "2999-01-01T00:00:00.000Z")
                ).result(15)
                is None
            )
        reader.wait_for_end()
        assert turn_checks.check_turn(talk, reader).text == "The newest."
        talk.model.wait_for_close(talk.script, number=0)

    def test_a_provider_that_takes_longer_than_the_clock_is_left_in_peace(self, talk: ConversationDriver) -> None:
        """While a function works it keeps the clock from ringing."""
        reader = talk.start_turn(slow_text_step("one two three four five", seconds=4))
        reader.wait_for_end()
        turn_checks.check_turn(talk, reader)
        (execution,) = turn_checks.describe_executions(talk.cloud, talk.bridge).values()
        assert "TaskTimedOut" not in {
            event["type"] for event in turn_checks.get_history(talk.cloud, execution["executionArn"])
        }


def entered_states(talk: ConversationDriver) -> list[str]:
    """The states the turn's first execution has been in."""
    described = turn_checks.describe_executions(talk.cloud, talk.bridge)[f"{talk.bridge}-1"]
    events = turn_checks.get_history(talk.cloud, described["executionArn"])
    return [event["stateEnteredEventDetails"]["name"] for event in events if event["type"].endswith("StateEntered")]
