"""The emulator tells what it was asked, to whoever asked it to remember."""

import httpx
import pytest

from local.processes import EmulatorProcess
from tests.local.emulator_lab import EmulatorLab

PAGE = "/_fermata/requests"


@pytest.fixture
def page(emulator: EmulatorProcess) -> str:
    return emulator.endpoint + PAGE


def test_nothing_is_remembered_before_somebody_asks(lab: EmulatorLab, page: str) -> None:
    lab.read_notes("nobody")
    assert httpx.get(page, trust_env=False).json() == []


def test_requests_are_remembered_with_what_was_asked_and_answered(lab: EmulatorLab, page: str) -> None:
    httpx.post(page, trust_env=False)
    try:
        lab.read_notes("somebody")
        lab.states.list_state_machines()
        recorded = httpx.get(page, trust_env=False).json()
    finally:
        httpx.delete(page, trust_env=False)
    query, listed = recorded
    assert (query["service"], query["operation"], query["status"]) == ("dynamodb", "Query", 200)
    assert query["request"]["ExpressionAttributeValues"] == {":lab": {"S": "somebody"}}
    assert query["response"]["Items"] == []
    assert (listed["service"], listed["operation"]) == ("states", "ListStateMachines")
    assert "request" not in listed
    assert query["atNs"] < query["endedNs"] <= listed["atNs"]


def test_what_is_remembered_ends_with_its_asker(lab: EmulatorLab, page: str) -> None:
    httpx.post(page, trust_env=False)
    httpx.delete(page, trust_env=False)
    lab.read_notes("somebody else")
    assert httpx.get(page, trust_env=False).json() == []
