"""A desk that may do only what its door's role allows: every call to AWS is held against the written policies.

The local cloud enforces no permissions; this is where a missing one shows.
"""

from dataclasses import dataclass, field
from typing import Any

from fermata.aws.desk import Desk
from tests.template.iam import Role
from tests.unit.turns.stage import HandWorkflow

TABLES = {
    "conversations": "ConversationsTable",
    "bridges": "BridgesTable",
    "pricing": "PricingTable",
    "usage": "UsageTable",
    "settings": "SettingsTable",
}
"""tests/desk.py's tables by their logical names in the template."""
IN_A_TRANSACTION = {
    "Put": "dynamodb:PutItem",
    "Update": "dynamodb:UpdateItem",
    "Delete": "dynamodb:DeleteItem",
    "ConditionCheck": "dynamodb:ConditionCheckItem",
}


@dataclass(frozen=True)
class Need:
    """What IAM would be asked: an action on a resource, the purpose when it is the key's, the prefix of a list."""

    action: str
    resource: str
    purpose: str = ""
    prefix: str = ""

    def is_met_by(self, role: Role) -> bool:
        context = {"purpose": self.purpose, "prefix": self.prefix}
        return role.may(self.action, self.resource, **{key: value for key, value in context.items() if value})

    def __str__(self) -> str:
        return f"{self.action} on {self.resource} {self.purpose}{self.prefix}".rstrip()


@dataclass(eq=False)
class Guard:
    role: Role
    asked: set[Need] = field(default_factory=set)
    refused: list[str] = field(default_factory=list)
    """Kept as well as raised, because a sweep goes on after an error."""

    def check(self, params: dict[str, Any], model: Any, **_: Any) -> None:
        """Botocore calls this before each request is built."""
        for need in needs(model.service_model.service_name, model.name, params):
            self.ask(need)

    def ask(self, need: Need) -> None:
        self.asked.add(need)
        if not need.is_met_by(self.role):
            self.refused.append(str(need))
            raise AssertionError(f"{self.role.name} does not allow {need}")


@dataclass(frozen=True)
class GuardedDesk(Desk):
    guard: Guard

    def _client(self, service: Any) -> Any:
        client = super()._client(service)
        client.meta.events.register("before-parameter-build", self.guard.check)
        return client


class GuardedWorkflow:
    """The stage's workflow, reached with a role."""

    def __init__(self, inner: HandWorkflow, guard: Guard) -> None:
        self._inner, self._guard = inner, guard

    def start(self, tenant: str, turn: str, n: int) -> None:
        self._guard.ask(Need("states:StartExecution", "stateMachine:turn"))
        self._inner.start(tenant, turn, n)

    def go_on(self, token: str, goal: str, *, seconds: int = 0, hint: dict[str, Any] | None = None) -> bool:
        self._guard.ask(Need("states:SendTaskSuccess", "stateMachine:turn"))
        return self._inner.go_on(token, goal, seconds=seconds, hint=hint)

    def beat(self, token: str) -> bool:
        self._guard.ask(Need("states:SendTaskHeartbeat", "stateMachine:turn"))
        return self._inner.beat(token)

    def state(self, turn: str, n: int) -> tuple[str, str]:
        self._guard.ask(Need("states:DescribeExecution", f"execution:turn:{turn}-{n}"))
        return self._inner.state(turn, n)


def guarded(desk: Desk, workflow: HandWorkflow, role: Role) -> GuardedDesk:
    found = GuardedDesk(desk.settings, desk.clock, Guard(role))
    found.__dict__["workflow"] = GuardedWorkflow(workflow, found.guard)
    return found


def needs(service: str, operation: str, params: dict[str, Any]) -> list[Need]:
    """The permissions that one request takes, as AWS documents them."""
    match service, operation:
        case "dynamodb", "TransactWriteItems":
            return [
                Need(IN_A_TRANSACTION[kind], TABLES[write["TableName"]])
                for item in params["TransactItems"]
                for kind, write in item.items()
            ]
        case "dynamodb", "BatchGetItem":
            return [Need("dynamodb:BatchGetItem", TABLES[table]) for table in params["RequestItems"]]
        case "dynamodb", "BatchWriteItem":
            return [Need("dynamodb:BatchWriteItem", TABLES[table]) for table in params["RequestItems"]]
        case "dynamodb", _:
            index = f"/index/{params['IndexName']}" if "IndexName" in params else ""
            return [Need(f"dynamodb:{operation}", TABLES[params["TableName"]] + index)]
        case "s3", "ListObjectsV2":
            return [Need("s3:ListBucket", "Bucket", prefix=params["Prefix"])]
        case "s3", "DeleteObjects":
            return [Need("s3:DeleteObject", f"Bucket/{found['Key']}") for found in params["Delete"]["Objects"]]
        case "s3", _:
            return [Need(f"s3:{operation}", f"Bucket/{params['Key']}")]
        case "kms", _:
            return [Need(f"kms:{operation}", "Key", params["EncryptionContext"]["purpose"])]
    raise NotImplementedError(f"guarded.py does not know {service}.{operation} yet.")
