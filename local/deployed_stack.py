"""Use the stack that is deployed on the emulated AWS: its outputs, functions and workflow executions."""

import json
import time
from abc import ABC, abstractmethod
from typing import Any

from local import deploy, template
from local.aws_clients import get_client
from local.front_door.api_gateway_routing import ApiGateway
from local.seed import LocalResources

SWEEP_EVENT = {"v": 1, "sweep": True}
ALIAS = "live"
"""What invokes a function invokes this alias of it (decision 0253)."""
EXECUTIONS_TIMEOUT_SECONDS = 60.0
"""The longest wait for executions. They usually end a moment after the turn."""


class DeployedStack(ABC):
    """The deployed stack, as tests and tools reach it."""

    def __init__(self) -> None:
        self.outputs: dict[str, str] = {}

    @property
    @abstractmethod
    def endpoint(self) -> str:
        """URL of the emulated AWS."""

    def get_client(self, service: str) -> Any:
        """Get a boto3 client of the emulated AWS."""
        return get_client(service, self.endpoint)

    def resources(self) -> LocalResources:
        """Make resources for the functions of `fermata`, with the settings of the deployed round function."""
        return LocalResources.for_endpoint(self.endpoint, self.get_function_variables("round"))

    def get_output(self, name: str) -> str:
        """Get an output of the deployed stack: a table's name, the machine's ARN."""
        return self.outputs[name]

    def invoke_function(self, folder: str, event: Any) -> Any:
        """Invoke the function of `functions/<folder>` and return its result."""
        name, payload = self.function_name(folder), json.dumps(event)
        answer = self.get_client("lambda").invoke(FunctionName=name, Qualifier=ALIAS, Payload=payload)
        return json.loads(answer["Payload"].read())

    def run_recovery_sweep(self) -> int:
        """Run the sweep over open turns now and return how many it looked at."""
        answer = self.invoke_function("recover", SWEEP_EVENT)
        return int(answer["seen"]) if isinstance(answer, dict) else 0

    def function_name(self, folder: str) -> str:
        """Get the deployed name of the function whose code is in `functions/<folder>`."""
        functions = template.resources_of_type(template.load_template(), "Function")
        logical_id = next(
            name for name, function in functions.items() if function["Properties"]["CodeUri"].endswith(f"/{folder}")
        )
        resource = self.get_client("cloudformation").describe_stack_resource(
            StackName=deploy.STACK_NAME, LogicalResourceId=logical_id
        )
        return str(resource["StackResourceDetail"]["PhysicalResourceId"])

    def get_function_variables(self, folder: str) -> dict[str, str]:
        """Get the environment variables of the live version of the function whose code is in `functions/<folder>`."""
        return dict(self.get_function_configuration(folder)["Environment"]["Variables"])

    def get_function_configuration(self, folder: str) -> dict[str, Any]:
        """Get the configuration of the live version of the function whose code is in `functions/<folder>`."""
        client, name = self.get_client("lambda"), self.function_name(folder)
        answer = client.get_function_configuration(FunctionName=name, Qualifier=ALIAS)
        return {member: value for member, value in answer.items() if member != "ResponseMetadata"}

    def get_streaming_folder(self) -> str:
        """Get the folder of the function that the front door runs itself, because it streams."""
        document = template.load_template()
        (logical_id,) = ApiGateway(document).streaming_functions()
        return str(document["Resources"][logical_id]["Properties"]["CodeUri"]).rpartition("/")[2]

    def list_executions(self, turn: str | None = None) -> list[dict[str, Any]]:
        """List executions of the turn machine, the newest first; only those of `turn`, if one is given."""
        machine = self.get_output("TurnMachineArn")
        executions = self.get_client("stepfunctions").list_executions(stateMachineArn=machine)["executions"]
        return [execution for execution in executions if turn is None or execution["name"].rpartition("-")[0] == turn]

    def wait_for_executions(
        self, turn: str, timeout_seconds: float = EXECUTIONS_TIMEOUT_SECONDS
    ) -> list[dict[str, Any]]:
        """List the executions of a turn once all have ended, which is shortly after its client sees the end.

        Raises:
            TimeoutError: when one still runs after `timeout_seconds`.
        """
        deadline = time.monotonic() + timeout_seconds
        while time.monotonic() < deadline:
            executions = self.list_executions(turn)
            if all(execution["status"] != "RUNNING" for execution in executions):
                return executions
            time.sleep(0.02)
        raise TimeoutError(f"An execution of turn {turn} still runs.")

    def stop_execution(self, name: str) -> None:
        """Stop an execution from outside, as an operator at the console may."""
        arn = f"{self.get_output('TurnMachineArn').replace(':stateMachine:', ':execution:')}:{name}"
        self.get_client("stepfunctions").stop_execution(executionArn=arn)
