"""Test the emulator's record of requests."""

import httpx
import pytest

from local.processes import EmulatorProcess
from local.signed_pages import RunSignature
from tests.local.emulator_lab import EmulatorLab

PAGE = "/_fermata/requests"


@pytest.fixture
def page(emulator: EmulatorProcess) -> str:
    return emulator.endpoint + PAGE


def test_nothing_is_recorded_before_a_start(lab: EmulatorLab, page: str) -> None:
    lab.read_notes("nobody")
    assert httpx.get(page, auth=RunSignature(), trust_env=False).json() == []


def test_requests_are_recorded_with_request_and_response(lab: EmulatorLab, page: str) -> None:
    httpx.post(page, auth=RunSignature(), trust_env=False)
    try:
        lab.read_notes("somebody")
        lab.states.list_state_machines()
        recorded = httpx.get(page, auth=RunSignature(), trust_env=False).json()
    finally:
        httpx.delete(page, auth=RunSignature(), trust_env=False)
    asked = ("Query", "ListStateMachines")  # a function of another test may write its last note meanwhile
    query, listed = (one for one in recorded if one["operation"] in asked)
    assert (query["service"], query["operation"], query["status"]) == ("dynamodb", "Query", 200)
    assert query["request"]["ExpressionAttributeValues"] == {":lab": {"S": "somebody"}}
    assert query["response"]["Items"] == []
    assert (listed["service"], listed["operation"]) == ("states", "ListStateMachines")
    assert "request" not in listed
    assert query["atNs"] < query["endedNs"] <= listed["atNs"]


def test_records_are_deleted_at_the_end(lab: EmulatorLab, page: str) -> None:
    httpx.post(page, auth=RunSignature(), trust_env=False)
    httpx.delete(page, auth=RunSignature(), trust_env=False)
    lab.read_notes("somebody else")
    assert httpx.get(page, auth=RunSignature(), trust_env=False).json() == []
