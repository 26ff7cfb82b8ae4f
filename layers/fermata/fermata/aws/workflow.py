"""The workflow that runs a turn's rounds: start an execution, wake it, ask how it is."""

import json
from typing import TYPE_CHECKING, Any, Literal

from botocore.exceptions import BotoCoreError, ClientError

from fermata.aws import observability
from fermata.domain.errors import ServiceUnavailable

if TYPE_CHECKING:
    from types_boto3_stepfunctions import SFNClient

NextState = Literal["round", "hold", "finish"]
EXPIRED_TOKEN_CODES = {"TaskTimedOut", "TaskDoesNotExist", "InvalidToken"}


class TurnWorkflow:
    def __init__(self, client: "SFNClient", machine_arn: str) -> None:
        self._client = client
        self._machine_arn = machine_arn

    def start_execution(self, tenant: str, turn: str, n: int) -> None:
        """Run the turn's n-th execution; a second start of the same one changes nothing."""
        given = json.dumps({"v": 1, "tenant": tenant, "turn": turn, "n": n})
        try:
            self._client.start_execution(stateMachineArn=self._machine_arn, name=f"{turn}-{n}", input=given)
        except ClientError as error:
            if _code(error) != "ExecutionAlreadyExists":
                raise

    def resume_execution(
        self, token: str, next_state: NextState, *, seconds: int = 0, hint: dict[str, Any] | None = None
    ) -> bool:
        """SendTaskSuccess. False when somebody else already went on with this token.

        Any other failure is Unavailable: whoever asked repeats the request, and the send with it.
        """
        output = {"next": next_state, "seconds": seconds, "hint": hint}
        try:
            self._client.send_task_success(taskToken=token, output=json.dumps(output))
        except ClientError as error:
            if _code(error) in EXPIRED_TOKEN_CODES:
                return False
            raise ServiceUnavailable(
                "The workflow could not be woken. Send the same request again.", retry_after=1
            ) from error
        except BotoCoreError as error:
            raise ServiceUnavailable(
                "The workflow could not be woken. Send the same request again.", retry_after=1
            ) from error
        return True

    def send_heartbeat(self, token: str) -> bool:
        """SendTaskHeartbeat. False when the token is no longer waited for.

        It only keeps an alarm clock from ringing, so one that fails is told to us and to nobody else.
        """
        try:
            self._client.send_task_heartbeat(taskToken=token)
        except (BotoCoreError, ClientError) as error:
            if isinstance(error, ClientError) and _code(error) in EXPIRED_TOKEN_CODES:
                return False
            observability.log_warning("workflow.beat_failed", reason=str(error))
        return True

    def describe_execution(self, turn: str, n: int) -> tuple[str, str]:
        """(status, error) of the n-th execution as Step Functions tells it; status MISSING when unknown there."""
        arn = f"{self._machine_arn.replace(':stateMachine:', ':execution:')}:{turn}-{n}"
        try:
            found = self._client.describe_execution(executionArn=arn)
        except ClientError as error:
            if _code(error) == "ExecutionDoesNotExist":
                return "MISSING", ""
            raise
        return found["status"], str(found.get("error", ""))


def _code(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))
