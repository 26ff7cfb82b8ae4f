"""A model that makes no progress answers without tools, in a deployment with the limits that are the default.

The other end-to-end tests lift the limits, because they repeat calls as often as they like.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from local.cloud import LocalCloud
from local.seed import LocalResources
from tests.e2e import turn_checks
from tests.e2e.chat_session import OK_RESULT, ChatSession
from tests.e2e.demo_model_client import DemoModelClient, text_step, tool_call_step
from tests.e2e.deployment_parameters import SHORT_START_GRACE, SHORT_TIMINGS
from tests.e2e.stream_reader import Event

FAILURE: dict[str, Any] = {"ok": False, "error": "There is no such node."}
LIFTED = ("MaxRepeatedCalls", "MaxFailedRounds")


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCloud]:
    parameters = {name: value for name, value in SHORT_TIMINGS.items() if name not in LIFTED} | {"MaxRounds": 8}
    directory: Path = tmp_path_factory.mktemp("cloud")
    with LocalCloud(directory, parameters=parameters, environment=SHORT_START_GRACE) as running:
        yield running


@pytest.fixture(scope="module")
def resources(cloud: LocalCloud) -> LocalResources:
    return cloud.resources()


@pytest.fixture(scope="module")
def model(cloud: LocalCloud) -> Iterator[DemoModelClient]:
    assert cloud.model is not None
    model = DemoModelClient(cloud.model.url)
    yield model
    model.close()


def list_offers(session: ChatSession) -> list[bool]:
    """Return whether each provider request of the turn let the model call tools."""
    return ["tool_choice" not in request["body"] for request in session.model_requests()]


def get_warning(session: ChatSession) -> Event:
    (warning,) = [event for event in session.open_reader().wait_for_end() if event["type"] == "warning"]
    return warning


def test_the_same_large_call_is_answered_three_times(session: ChatSession) -> None:
    call = ("insertHtml", {"parentId": "root", "html": "<p>Bread</p>" * 4_000})
    steps = [tool_call_step(call) for _ in range(3)]
    session.run_turn(*steps, text_step("I stop."), executor=lambda _: OK_RESULT)
    assert list_offers(session) == [True, True, True, False]
    assert "insertHtml 3 times" in str(session.model_requests()[-1]["body"]["messages"])
    assert get_warning(session)["code"] == "repeatedCall"
    turn_checks.check_turn(session)


def test_five_rounds_of_failures_end_in_an_answer(session: ChatSession) -> None:
    steps = [tool_call_step(("deleteNode", {"nodeId": f"n{number}"})) for number in range(5)]
    session.run_turn(*steps, text_step("I stop."), executor=lambda _: FAILURE)
    assert list_offers(session) == [True] * 5 + [False]
    assert get_warning(session)["code"] == "repeatedFailures"
    turn_checks.check_turn(session)


def test_a_last_round_in_which_the_model_only_calls_tools_is_asked_again(session: ChatSession) -> None:
    calls = [tool_call_step(("renameNode", {"nodeId": f"n{number}", "label": "A"})) for number in range(8)]
    session.run_turn(*calls, text_step("Seven of eight."), executor=lambda _: OK_RESULT)
    assert list_offers(session) == [True] * 7 + [False] * 2
    view = turn_checks.check_turn(session)
    assert view.text.endswith("Seven of eight.")
    assert [event["type"] for event in session.open_reader().wait_for_end()].count("warning") == 0
