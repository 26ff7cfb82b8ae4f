"""Nobody answers, somebody answers late, and the alarm clock that only ever wakes the round up to look."""

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from local.cloud import LocalCloud
from local.processes import ROOT
from tests.e2e import checks
from tests.e2e.faults import Faults
from tests.e2e.model import calls, says, slowly
from tests.e2e.reader import Event
from tests.e2e.talk import DELETE, INSERT, OK, READ, Talk, http, said
from tests.e2e.test_attempts import wake
from tests.local.lab import until


@pytest.fixture(scope="class")
def patient(cloud: LocalCloud) -> None:
    """A browser may take longer than the alarm clock, so the workflow holds the turn."""
    cloud.redeploy(HeartbeatSeconds=2, BrowserWaitSeconds=4, Unanswered="tell_model", ReaderSeconds=1)
    warm_up(cloud)


@pytest.fixture(scope="class")
def impatient(cloud: LocalCloud) -> None:
    cloud.redeploy(HeartbeatSeconds=3, BrowserWaitSeconds=2.5, Unanswered="fail", ReaderSeconds=840)
    warm_up(cloud)


def warm_up(cloud: LocalCloud) -> None:
    """What is deployed anew takes its time at first, and these clocks are short."""
    for function in ("round", "hold"):
        cloud.invoke(function, json.loads((ROOT / f"events/{function}.json").read_text()))
    with http(cloud) as bare:
        assert bare.post("/tool-result", json={"bridgeId": "x", "requestId": "1.0.x", "result": OK}).status_code == 404


@pytest.mark.usefixtures("patient")
class TestAHold:
    def test_an_answer_that_comes_after_the_clock_would_have_rung_is_in_time(self, talk: Talk) -> None:
        held: list[str] = []

        def thinks(request: Event) -> dict[str, Any]:
            talk.bridge = request["effectKey"].partition("/")[0]
            until(lambda: "Hold" in entered(talk), "the turn is held")
            held.append(request["requestId"])
            return OK

        outcome = talk.run(calls(INSERT), says("Worth the wait."), executor=thinks)
        assert held
        assert outcome.view.text == "Worth the wait."
        assert entered(talk)[-6:] == ["Next", "Hold", "Next", "RunRound", "Next", "Finished"]
        assert checks.sound(talk) == outcome.view

    def test_when_nobody_answers_the_model_is_told_and_goes_on(self, talk: Talk) -> None:
        """So it is set here; and the client reconnects every second, when its reader's time is over."""
        requests: list[Event] = []

        def nobody(request: Event) -> dict[str, Any]:
            requests.append(request)
            until(lambda: talk.client.bridge(request["effectKey"].partition("/")[0])["pending"] == [], "it expires")
            return OK

        outcome = talk.run(calls(READ, INSERT), says("I will manage alone."), executor=nobody)
        assert outcome.status == "done"
        assert outcome.reconnects >= 1
        assert [badge.state for badge in outcome.view.tools] == ["failed", "failed"]
        assert all("did not answer" in said(block) for block in talk.results())
        assert len(requests) == 1
        assert talk.post_answer(requests[0]).status_code == 404
        assert checks.sound(talk) == outcome.view

    def test_cancelled_while_held_the_execution_ends_at_once(self, talk: Talk) -> None:
        talk.start(calls(INSERT), says("Never."))
        until(lambda: "Hold" in entered(talk), "the turn is held")
        first = checks.pause(talk).token
        talk.cancel()
        checks.executions_are_over(talk.cloud, talk.bridge, seconds=2)
        assert first
        checks.sound(talk, ends="cancelled")

    def test_the_holding_function_dies_and_its_successor_holds(self, talk: Talk, faults: Faults) -> None:
        with faults.once("dynamodb.PutItem", "exit", contains="p#000001"):
            talk.start(calls(INSERT), says("Still here."))
            until(lambda: entered(talk).count("Hold") == 1, "the turn is held")
        (asked,) = talk.client.bridge(talk.bridge)["pending"]
        talk.answer(asked)
        until(lambda: talk.client.bridge(talk.bridge)["status"] == "done", "the turn ends")
        checks.sound(talk)


@pytest.mark.usefixtures("impatient")
class TestAnAlarmClock:
    def test_when_nobody_answers_the_turn_ends_with_an_error_and_a_late_answer_is_a_404(self, talk: Talk) -> None:
        reader = talk.start(calls(INSERT, DELETE), says("Never."))
        request = reader.wait("toolRequest")
        reader.finish()
        last = reader.events[-1]
        assert (last["code"], last["retryable"]) == ("no_answer", True)
        assert "insertHtml" in last["message"]
        assert talk.post_answer(request).status_code == 404
        assert len(talk.requests()) == 1
        checks.sound(talk, reader, ends="error")

    def test_an_answer_that_woke_nobody_is_found_when_the_clock_rings(self, talk: Talk, faults: Faults) -> None:
        """The answering function died before it could say so, and its browser never came back."""
        reader = talk.start(calls(INSERT), says("Found."))
        request = reader.wait("toolRequest")
        with faults.once("stepfunctions.SendTaskSuccess", "exit"):
            assert talk.post_answer(request).status_code == 502
        reader.finish()
        assert checks.sound(talk, reader).text == "Found."

    def test_a_superseded_attempt_leaves_its_token_to_the_clock_and_the_execution_finishes(
        self, talk: Talk, cloud: LocalCloud
    ) -> None:
        reader = talk.start(slowly(" ".join(["old"] * 100), seconds=20), says("The newest."))
        reader.wait("text")
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(cloud.invoke, "round", wake(talk, "2999-01-01T00:00:00.000Z")).result(15) is None
        reader.finish()
        assert checks.sound(talk, reader).text == "The newest."
        talk.model.closed(talk.script, number=0)

    def test_a_provider_that_takes_longer_than_the_clock_is_left_in_peace(self, talk: Talk) -> None:
        """While a function works it keeps the clock from ringing."""
        reader = talk.start(slowly("one two three four five", seconds=4))
        reader.finish()
        checks.sound(talk, reader)
        (execution,) = checks.executions(talk.cloud, talk.bridge).values()
        assert "TaskTimedOut" not in {event["type"] for event in checks.history(talk.cloud, execution["executionArn"])}


def entered(talk: Talk) -> list[str]:
    """The states the turn's first execution has been in."""
    described = checks.executions(talk.cloud, talk.bridge)[f"{talk.bridge}-1"]
    events = checks.history(talk.cloud, described["executionArn"])
    return [event["stateEnteredEventDetails"]["name"] for event in events if event["type"].endswith("StateEntered")]
