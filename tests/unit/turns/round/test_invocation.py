"""Parsing the workflow's payload."""

from types import SimpleNamespace
from typing import Any

import pytest

from fermata.turns.round.invocation import invocation_from_event

PAYLOAD: dict[str, Any] = {
    "v": 1,
    "tenant": "bakery",
    "turn": "turn-1",
    "n": 2,
    "token": "token-1",
    "entered": "2026-01-01T00:00:00.5Z",
    "retry": 1,
    "hint": {"round": 1, "entry": 3, "next": 5},
}
CONTEXT = SimpleNamespace(aws_request_id="request-1", get_remaining_time_in_millis=lambda: 1500)


def test_an_invocation_has_turn_token_epoch_and_remaining_time() -> None:
    invocation = invocation_from_event(PAYLOAD, CONTEXT)
    assert (invocation.tenant, invocation.turn, invocation.execution_number, invocation.token) == (
        "bakery",
        "turn-1",
        2,
        "token-1",
    )
    assert invocation.epoch == "0002|2026-01-01T00:00:00.500000+00:00|001"
    assert invocation.remaining_seconds() == 1.5
    assert invocation.hint == PAYLOAD["hint"]
    assert not invocation.is_hold
    assert invocation_from_event(PAYLOAD, CONTEXT, is_hold=True).is_hold


def test_a_request_delivered_twice_makes_two_owners() -> None:
    first, again = invocation_from_event(PAYLOAD, CONTEXT), invocation_from_event(PAYLOAD, CONTEXT)
    assert first.epoch == again.epoch
    assert first.owner != again.owner
    assert "request-1" in first.owner


@pytest.mark.parametrize("hint", [None, {}, {"round": 1}])
def test_payloads_of_older_and_newer_workflows_are_accepted(hint: Any) -> None:
    assert invocation_from_event(PAYLOAD | {"hint": hint, "more": "from a newer one"}, CONTEXT).hint == hint
