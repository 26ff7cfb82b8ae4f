"""The workflow is started once, woken with tokens that are good once, and asked how it is."""

import json
from typing import Any

import pytest
from botocore.exceptions import ClientError, ConnectTimeoutError

from fermata.aws.resources import Resources
from fermata.domain.errors import ServiceUnavailable


def answer_with(resources: Resources, monkeypatch: pytest.MonkeyPatch, call: str, outcome: Any) -> list[dict[str, Any]]:
    """What the next calls of this name are asked for; each comes to `outcome`."""
    asked: list[dict[str, Any]] = []

    def answered(**request: Any) -> Any:
        asked.append(request)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    monkeypatch.setattr(resources.workflow._client, call, answered)
    return asked


def error(code: str) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": "no"}}, "SendTaskSuccess")


TIMEOUT = ConnectTimeoutError(endpoint_url="states")


def test_an_execution_is_named_after_its_turn_and_carries_ids_only(resources: Resources) -> None:
    resources.workflow.start_execution("bakery", "turn-1", 2)
    found = resources.workflow._client.list_executions(stateMachineArn=resources.settings.state_machine_arn)[
        "executions"
    ]
    assert [execution["name"] for execution in found] == ["turn-1-2"]
    told = resources.workflow._client.describe_execution(executionArn=found[0]["executionArn"])["input"]
    assert json.loads(told) == {"v": 1, "tenant": "bakery", "turn": "turn-1", "n": 2}


def test_a_second_start_of_the_same_execution_changes_nothing(
    resources: Resources, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer_with(resources, monkeypatch, "start_execution", error("ExecutionAlreadyExists"))
    resources.workflow.start_execution("bakery", "turn-1", 1)


def test_a_start_that_fails_is_told(resources: Resources, monkeypatch: pytest.MonkeyPatch) -> None:
    answer_with(resources, monkeypatch, "start_execution", error("ExecutionLimitExceeded"))
    with pytest.raises(ClientError):
        resources.workflow.start_execution("bakery", "turn-1", 1)


def test_going_on_says_where_to_and_where_to_begin_reading(
    resources: Resources, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = answer_with(resources, monkeypatch, "send_task_success", {})
    assert resources.workflow.resume_execution("token", "hold", seconds=90, hint={"round": 1})
    [request] = asked
    assert request["taskToken"] == "token"
    assert json.loads(request["output"]) == {"next": "hold", "seconds": 90, "hint": {"round": 1}}


@pytest.mark.parametrize("code", ["TaskTimedOut", "TaskDoesNotExist", "InvalidToken"])
def test_a_token_that_is_gone_means_that_somebody_else_went_on(
    resources: Resources, monkeypatch: pytest.MonkeyPatch, code: str
) -> None:
    answer_with(resources, monkeypatch, "send_task_success", error(code))
    answer_with(resources, monkeypatch, "send_task_heartbeat", error(code))
    assert resources.workflow.resume_execution("token", "round") is False
    assert resources.workflow.send_heartbeat("token") is False


@pytest.mark.parametrize("trouble", [error("ThrottlingException"), error("InternalServerError"), TIMEOUT])
def test_any_other_failed_send_asks_for_the_same_request_again(
    resources: Resources, monkeypatch: pytest.MonkeyPatch, trouble: Exception
) -> None:
    answer_with(resources, monkeypatch, "send_task_success", trouble)
    with pytest.raises(ServiceUnavailable) as told:
        resources.workflow.resume_execution("token", "round")
    assert told.value.retry_after


@pytest.mark.parametrize("trouble", [error("ThrottlingException"), TIMEOUT])
def test_a_heartbeat_that_fails_is_nobodys_trouble_but_is_logged(
    resources: Resources, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, trouble: Exception
) -> None:
    answer_with(resources, monkeypatch, "send_task_heartbeat", trouble)
    assert resources.workflow.send_heartbeat("token")
    assert "workflow.beat_failed" in caplog.text


def test_an_execution_that_never_was_is_missing(resources: Resources) -> None:
    assert resources.workflow.describe_execution("turn-1", 1) == ("MISSING", "")
    resources.workflow.start_execution("bakery", "turn-1", 1)
    assert resources.workflow.describe_execution("turn-1", 1)[0] in ("RUNNING", "SUCCEEDED")


def test_an_execution_that_failed_says_of_what(resources: Resources, monkeypatch: pytest.MonkeyPatch) -> None:
    answer_with(resources, monkeypatch, "describe_execution", {"status": "FAILED", "error": "States.ServiceRestart"})
    assert resources.workflow.describe_execution("turn-1", 1) == ("FAILED", "States.ServiceRestart")


def test_trouble_in_asking_is_not_taken_for_a_missing_execution(
    resources: Resources, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer_with(resources, monkeypatch, "describe_execution", error("ThrottlingException"))
    with pytest.raises(ClientError):
        resources.workflow.describe_execution("turn-1", 1)
