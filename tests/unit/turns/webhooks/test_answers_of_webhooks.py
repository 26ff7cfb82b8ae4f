"""A webhook that may answer gives the result of a call in its response."""

from typing import Any

import pytest

from fermata.domain.errors import ServiceUnavailable
from fermata.domain.events import ToolResultEvent
from fermata.webhooks.webhook_event import WebhookEvent
from tests.scripted_tool_server import ScriptedToolServer
from tests.unit.turns import invariants
from tests.unit.turns.stage import Stage
from tests.unit.turns.webhooks.webhook_steps import add, deliver, finish, queue_of, raise_unavailable, wait_for_editor


def test_an_answer_is_taken_though_the_function_fails_in_the_middle(
    stage: Stage, receiver: ScriptedToolServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The receiver has answered, and the answer cannot be stored. The queue repeats the message."""
    add(stage, receiver, WebhookEvent.TOOL_REQUEST, may_answer=True)
    for _ in range(2):
        receiver.script_answer({"result": {"ok": True, "data": {"removed": 1}}})
    wait_for_editor(stage)
    [(message, _)] = queue_of(stage).messages
    with monkeypatch.context() as patch:
        patch.setattr("fermata.turns.webhooks.take_answer.submit_tool_result", raise_unavailable)
        with pytest.raises(ServiceUnavailable):
            deliver(stage)
    queue_of(stage).messages.append((message, 0))
    deliver(stage)
    finish(stage)
    assert stage.results_sent_to_model()[0].data == {"removed": 1}


def test_a_response_may_carry_the_result(stage: Stage, receiver: ScriptedToolServer) -> None:
    add(stage, receiver, WebhookEvent.TOOL_REQUEST, may_answer=True)
    receiver.script_answer({"result": {"ok": True, "data": {"removed": 1}}})
    wait_for_editor(stage)
    deliver(stage)
    [result] = [event for event in stage.events() if isinstance(event, ToolResultEvent)]
    assert result.ok
    finish(stage)
    assert stage.results_sent_to_model()[0].data == {"removed": 1}


@pytest.mark.parametrize("body", [{}, {"result": 5}, {"result": {}}, {"result": {"ok": "yes"}}, [], {"approved": True}])
def test_any_other_response_answers_nothing(stage: Stage, receiver: ScriptedToolServer, body: Any) -> None:
    add(stage, receiver, WebhookEvent.TOOL_REQUEST, may_answer=True)
    receiver.script_answer(body)
    wait_for_editor(stage)
    deliver(stage)
    assert stage.event_types()[-1] == "toolRequest"


def test_a_webhook_that_may_not_answer_answers_nothing(stage: Stage, receiver: ScriptedToolServer) -> None:
    add(stage, receiver, WebhookEvent.TOOL_REQUEST)
    receiver.script_answer({"result": {"ok": True}})
    wait_for_editor(stage)
    deliver(stage)
    assert stage.event_types()[-1] == "toolRequest"


def test_an_answer_that_comes_too_late_changes_nothing(stage: Stage, receiver: ScriptedToolServer) -> None:
    add(stage, receiver, WebhookEvent.TOOL_REQUEST, may_answer=True)
    receiver.script_answer({"result": {"ok": True}}, before=lambda _call: stage.cancel_turn())
    wait_for_editor(stage)
    deliver(stage)
    invariants.check_invariants(stage)
