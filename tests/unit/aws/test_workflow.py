"""Start, resume and describe workflow executions."""

import json
from typing import Any

import pytest
from botocore.exceptions import ClientError, ConnectTimeoutError

from fermata.aws.resources import Resources
from fermata.domain.errors import ServiceUnavailable


def answer_with(resources: Resources, monkeypatch: pytest.MonkeyPatch, call: str, outcome: Any) -> list[dict[str, Any]]:
    """Make every call of this name return or raise `outcome`; returns the list of requests."""
    requests: list[dict[str, Any]] = []

    def respond(**request: Any) -> Any:
        requests.append(request)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    monkeypatch.setattr(resources.workflow._client, call, respond)
    return requests


def error(code: str) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": "no"}}, "SendTaskSuccess")


TIMEOUT = ConnectTimeoutError(endpoint_url="states")


def test_an_execution_is_named_after_its_turn_and_carries_ids_only(resources: Resources) -> None:
    resources.workflow.start_execution("bakery", "turn-1", 2, hint={"round": 0})
    executions = resources.workflow._client.list_executions(stateMachineArn=resources.settings.state_machine_arn)[
        "executions"
    ]
    assert [execution["name"] for execution in executions] == ["turn-1-2"]
    execution_input = resources.workflow._client.describe_execution(executionArn=executions[0]["executionArn"])["input"]
    ids = {"v": 1, "tenant": "bakery", "turn": "turn-1", "n": 2}
    assert json.loads(execution_input) == ids | {"hint": {"round": 0}}


def test_a_second_start_of_the_same_execution_changes_nothing(
    resources: Resources, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer_with(resources, monkeypatch, "start_execution", error("ExecutionAlreadyExists"))
    resources.workflow.start_execution("bakery", "turn-1", 1)


def test_a_failed_start_is_raised(resources: Resources, monkeypatch: pytest.MonkeyPatch) -> None:
    answer_with(resources, monkeypatch, "start_execution", error("ExecutionLimitExceeded"))
    with pytest.raises(ClientError):
        resources.workflow.start_execution("bakery", "turn-1", 1)


def test_resuming_passes_the_next_state_and_the_hint(resources: Resources, monkeypatch: pytest.MonkeyPatch) -> None:
    requests = answer_with(resources, monkeypatch, "send_task_success", {})
    assert resources.workflow.resume_execution("token", "hold", seconds=90, hint={"round": 1})
    [request] = requests
    assert request["taskToken"] == "token"
    assert json.loads(request["output"]) == {"next": "hold", "seconds": 90, "hint": {"round": 1}}


@pytest.mark.parametrize("code", ["TaskTimedOut", "TaskDoesNotExist", "InvalidToken"])
def test_an_expired_token_means_that_the_execution_was_resumed_already(
    resources: Resources, monkeypatch: pytest.MonkeyPatch, code: str
) -> None:
    answer_with(resources, monkeypatch, "send_task_success", error(code))
    answer_with(resources, monkeypatch, "send_task_heartbeat", error(code))
    assert resources.workflow.resume_execution("token", "round") is False
    assert resources.workflow.send_heartbeat("token") is False


@pytest.mark.parametrize("failure", [error("ThrottlingException"), error("InternalServerError"), TIMEOUT])
def test_any_other_failure_asks_the_client_to_repeat_its_request(
    resources: Resources, monkeypatch: pytest.MonkeyPatch, failure: Exception
) -> None:
    answer_with(resources, monkeypatch, "send_task_success", failure)
    with pytest.raises(ServiceUnavailable) as raised:
        resources.workflow.resume_execution("token", "round")
    assert raised.value.retry_after


@pytest.mark.parametrize("failure", [error("ThrottlingException"), TIMEOUT])
def test_a_failed_heartbeat_is_logged_and_not_raised(
    resources: Resources, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, failure: Exception
) -> None:
    answer_with(resources, monkeypatch, "send_task_heartbeat", failure)
    assert resources.workflow.send_heartbeat("token")
    assert "workflow.heartbeat_failed" in caplog.text


def test_an_execution_that_was_never_started_is_missing(resources: Resources) -> None:
    assert resources.workflow.describe_execution("turn-1", 1) == ("MISSING", "")
    resources.workflow.start_execution("bakery", "turn-1", 1)
    assert resources.workflow.describe_execution("turn-1", 1)[0] in ("RUNNING", "SUCCEEDED")


def test_a_failed_execution_has_an_error_name(resources: Resources, monkeypatch: pytest.MonkeyPatch) -> None:
    answer_with(resources, monkeypatch, "describe_execution", {"status": "FAILED", "error": "States.ServiceRestart"})
    assert resources.workflow.describe_execution("turn-1", 1) == ("FAILED", "States.ServiceRestart")


def test_a_failed_describe_call_is_not_taken_for_a_missing_execution(
    resources: Resources, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer_with(resources, monkeypatch, "describe_execution", error("ThrottlingException"))
    with pytest.raises(ClientError):
        resources.workflow.describe_execution("turn-1", 1)
