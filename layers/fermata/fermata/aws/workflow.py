"""Start, resume and inspect executions of the Step Functions workflow that runs a turn's rounds."""

import json
from typing import TYPE_CHECKING, Any, Literal

from botocore.exceptions import BotoCoreError, ClientError

from fermata.aws import observability
from fermata.domain.errors import ServiceUnavailable

if TYPE_CHECKING:
    from types_boto3_stepfunctions import SFNClient

NextState = Literal["round", "hold", "finish"]
_EXPIRED_TOKEN_CODES = {"TaskTimedOut", "TaskDoesNotExist", "InvalidToken"}


class TurnWorkflow:
    """The state machine statemachines/turn.asl.yaml (decision 0012)."""

    def __init__(self, client: "SFNClient", machine_arn: str) -> None:
        self._client = client
        self._machine_arn = machine_arn

    def start_execution(self, tenant: str, turn: str, n: int, *, hint: dict[str, Any] | None = None) -> None:
        """Start an execution of a turn. Starting the same one again changes nothing.

        Args:
            tenant: The tenant's name.
            turn: The turn's id.
            n: Counts the turn's executions from 1; a recovered turn gets the next one.
            hint: As for `resume_execution`.
        """
        execution_input = json.dumps({"v": 1, "tenant": tenant, "turn": turn, "n": n, "hint": hint})
        try:
            self._client.start_execution(stateMachineArn=self._machine_arn, name=f"{turn}-{n}", input=execution_input)
        except ClientError as error:
            if _error_code(error) != "ExecutionAlreadyExists":
                raise

    def resume_execution(
        self, token: str, next_state: NextState, *, seconds: int = 0, hint: dict[str, Any] | None = None
    ) -> bool:
        """Complete the waiting task with SendTaskSuccess.

        Args:
            token: The task token that the pause stores.
            seconds: The time-out of the state Hold.
            hint: Where the next invocation can read the log (decision 0004).

        Returns:
            False if the token has been used already or its task has timed out.

        Raises:
            ServiceUnavailable: For any other failure. The client repeats its request, and with it this call.
        """
        output = {"next": next_state, "seconds": seconds, "hint": hint}
        try:
            self._client.send_task_success(taskToken=token, output=json.dumps(output))
        except (BotoCoreError, ClientError) as error:
            if _error_code(error) in _EXPIRED_TOKEN_CODES:
                return False
            raise ServiceUnavailable(
                "The workflow could not be resumed. Send the same request again.", retry_after=1
            ) from error
        return True

    def send_heartbeat(self, token: str) -> bool:
        """Extend the waiting task's time-out with SendTaskHeartbeat.

        A failed heartbeat is logged and not raised: the time-out only makes the workflow look at the turn.

        Returns:
            False if the task no longer waits for this token.
        """
        try:
            self._client.send_task_heartbeat(taskToken=token)
        except (BotoCoreError, ClientError) as error:
            if _error_code(error) in _EXPIRED_TOKEN_CODES:
                return False
            observability.log_warning("workflow.heartbeat_failed", reason=str(error))
        return True

    def describe_execution(self, turn: str, n: int) -> tuple[str, str]:
        """Return the status and the error name of the n-th execution; the status is MISSING if there is none."""
        arn = f"{self._machine_arn.replace(':stateMachine:', ':execution:')}:{turn}-{n}"
        try:
            execution = self._client.describe_execution(executionArn=arn)
        except ClientError as error:
            if _error_code(error) == "ExecutionDoesNotExist":
                return "MISSING", ""
            raise
        return execution["status"], str(execution.get("error", ""))


def _error_code(error: BotoCoreError | ClientError) -> str:
    """Return the AWS error code, or an empty string for a failure without a response."""
    return str(error.response.get("Error", {}).get("Code", "")) if isinstance(error, ClientError) else ""
