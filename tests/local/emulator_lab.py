"""Deploy functions and state machines to a running emulator for contract tests, and record what ran when."""

import io
import json
import uuid
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from local.aws_clients import get_client
from tests.waiting import wait_until

HANDLER_SOURCE = Path(__file__).with_name("scripted_handler.py").read_text()
ROLE_ARN = "arn:aws:iam::000000000000:role/lab"
Script = dict[str, list[list[Any]]]


@dataclass(frozen=True)
class LabNote:
    what: str
    pid: int
    event: dict[str, Any]

    @property
    def token(self) -> str:
        return str(self.event["token"])


class EmulatorLab:
    """Deploys functions and state machines. A script in an execution's input says what its function does."""

    def __init__(self, endpoint: str) -> None:
        self.connect(endpoint)
        self._make_table()
        self.function = self.make_function("lab")

    def connect(self, endpoint: str) -> None:
        """Talk to this emulator from now on, which has the same state."""
        self.endpoint = endpoint
        self.states = get_client("stepfunctions", endpoint)
        self.functions = get_client("lambda", endpoint)
        self.dynamodb = get_client("dynamodb", endpoint)

    def make_function(self, name: str, source: str = HANDLER_SOURCE, **config: Any) -> str:
        made = self.functions.create_function(
            FunctionName=name,
            Runtime="python3.13",
            Handler="app.handler",
            Role=ROLE_ARN,
            Code={"ZipFile": zip_source(source)},
            **({"Timeout": 300} | config),
        )
        return str(made["FunctionArn"])

    def invoke_function(self, function: str, event: Any) -> tuple[Any, str | None]:
        """Invoke a function and return its result, and the kind of its error if it failed."""
        answer = self.functions.invoke(FunctionName=function, Payload=json.dumps(event))
        return json.loads(answer["Payload"].read()), answer.get("FunctionError")

    def make_callback_machine(self, **task: Any) -> str:
        """Make a machine whose state waits for a task token, and is visited again while the answer says `again`."""
        payload = {
            "token": "{% $states.context.Task.Token %}",
            "retry": "{% $states.context.State.RetryCount %}",
            "entered": "{% $states.context.State.EnteredTime %}",
            "visit": "{% $exists($states.input.visit) ? $states.input.visit : 0 %}",
        }
        merged = "{% $merge([$states.context.Execution.Input, " + _jsonata(payload) + "]) %}"
        wait = {
            "Type": "Task",
            "Resource": "arn:aws:states:::lambda:invoke.waitForTaskToken",
            "TimeoutSeconds": 600,
            "Arguments": {"FunctionName": self.function, "Payload": merged},
            "Next": "Next",
        }
        again = [{"Condition": "{% $states.input.next = 'again' %}", "Next": "Wait"}]
        return self.make_machine(
            {
                "StartAt": "Wait",
                "States": {
                    "Wait": wait | task,
                    "Next": {"Type": "Choice", "Choices": again, "Default": "Done"},
                    "Done": {"Type": "Succeed"},
                    "Caught": {"Type": "Succeed"},
                },
            }
        )

    def make_machine(self, definition: dict[str, Any]) -> str:
        text = json.dumps({"QueryLanguage": "JSONata"} | definition)
        made = self.states.create_state_machine(name=f"m-{uuid.uuid4().hex[:8]}", definition=text, roleArn=ROLE_ARN)
        return str(made["stateMachineArn"])

    def start_execution(self, machine: str, script: Script | None = None, **more: Any) -> str:
        name = uuid.uuid4().hex
        given = json.dumps({"lab": name, "script": script or {}} | more)
        return str(self.states.start_execution(stateMachineArn=machine, name=name, input=given)["executionArn"])

    def wait_for_end(self, execution: str) -> dict[str, Any]:
        def look() -> dict[str, Any] | None:
            described: dict[str, Any] = self.states.describe_execution(executionArn=execution)
            return described if described["status"] != "RUNNING" else None

        return wait_until(look, f"{execution} ends") or {}

    def run_execution(self, machine: str, script: Script) -> dict[str, Any]:
        return self.wait_for_end(self.start_execution(machine, script))

    def get_history(self, execution: str) -> list[dict[str, Any]]:
        return list(self.states.get_execution_history(executionArn=execution, maxResults=1000)["events"])

    def shortest_gap(self, executions: Iterable[str], first: str, second: str) -> float:
        """The least number of seconds between an event of one type and the next of another.

        A busy machine adds to most gaps, but not to all of them.
        """
        gaps = []
        for execution in executions:
            began: float | None = None
            for event in self.get_history(execution):
                if event["type"] == second and began is not None:
                    gaps.append(event["timestamp"].timestamp() - began)
                    began = None
                elif event["type"] == first:
                    began = event["timestamp"].timestamp()
        return min(gaps)

    def read_notes(self, name: str) -> list[LabNote]:
        """Read the notes of an execution, by its ARN or name, in the order in which they were written."""
        key = {":lab": {"S": name.rpartition(":")[2]}}
        found = self.dynamodb.query(
            TableName="lab-notes", KeyConditionExpression="pk = :lab", ExpressionAttributeValues=key
        )
        return [
            LabNote(row["what"]["S"], int(row["pid"]["N"]), json.loads(row["event"]["S"])) for row in found["Items"]
        ]

    def wait_for_notes(self, name: str, what: str, times: int = 1) -> list[LabNote]:
        """Wait until something was noted so often, and return these notes."""

        def look() -> list[LabNote]:
            found = [note for note in self.read_notes(name) if note.what == what]
            return found if len(found) >= times else []

        return wait_until(look, f"{name} notes {what!r} {times} times")

    def _make_table(self) -> None:
        self.dynamodb.create_table(
            TableName="lab-notes",
            BillingMode="PAY_PER_REQUEST",
            AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in ("pk", "sk")],
            KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
        )


def zip_source(source: str) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("app.py", source)
    return content.getvalue()


def _jsonata(fields: dict[str, str]) -> str:
    return "{" + ", ".join(f"'{name}': {value[2:-2].strip()}" for name, value in fields.items()) + "}"
