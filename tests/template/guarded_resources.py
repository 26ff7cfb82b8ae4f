"""A resources that may do only what its door's role allows: every call to AWS is held against the written policies.

The local cloud enforces no permissions; this is where a missing one shows.
"""

from dataclasses import dataclass, field
from typing import Any

from fermata.aws.resources import Resources
from tests.template.iam import Role
from tests.unit.turns.stage import FakeWorkflow

LOGICAL_TABLE_NAMES = {
    "conversations": "ConversationsTable",
    "bridges": "BridgesTable",
    "pricing": "PricingTable",
    "usage": "UsageTable",
    "settings": "SettingsTable",
}
"""tests/resources.py's tables by their logical names in the template."""
TRANSACTION_ACTIONS = {
    "Put": "dynamodb:PutItem",
    "Update": "dynamodb:UpdateItem",
    "Delete": "dynamodb:DeleteItem",
    "ConditionCheck": "dynamodb:ConditionCheckItem",
}


@dataclass(frozen=True)
class NeededPermission:
    """What IAM would be asked: an action on a resource, the purpose when it is the key's, the prefix of a list."""

    action: str
    resource: str
    purpose: str = ""
    prefix: str = ""

    def is_granted_by(self, role: Role) -> bool:
        context = {"purpose": self.purpose, "prefix": self.prefix}
        return role.allows(self.action, self.resource, **{key: value for key, value in context.items() if value})

    def __str__(self) -> str:
        return f"{self.action} on {self.resource} {self.purpose}{self.prefix}".rstrip()


@dataclass(eq=False)
class PermissionGuard:
    role: Role
    requested: set[NeededPermission] = field(default_factory=set)
    refused: list[str] = field(default_factory=list)
    """Kept as well as raised, because a sweep goes on after an error."""

    def check_call(self, params: dict[str, Any], model: Any, **_: Any) -> None:
        """Botocore calls this before each request is built."""
        for need in list_needed_permissions(model.service_model.service_name, model.name, params):
            self.check_permission(need)

    def check_permission(self, need: NeededPermission) -> None:
        self.requested.add(need)
        if not need.is_granted_by(self.role):
            self.refused.append(str(need))
            raise AssertionError(f"{self.role.name} does not allow {need}")


@dataclass(frozen=True)
class GuardedResources(Resources):
    guard: PermissionGuard

    def _client(self, service: Any) -> Any:
        client = super()._client(service)
        client.meta.events.register("before-parameter-build", self.guard.check_call)
        return client


class GuardedWorkflow:
    """The stage's workflow, reached with a role."""

    def __init__(self, inner: FakeWorkflow, guard: PermissionGuard) -> None:
        self._inner, self._guard = inner, guard

    def start_execution(self, tenant: str, turn: str, n: int) -> None:
        self._guard.check_permission(NeededPermission("states:StartExecution", "stateMachine:turn"))
        self._inner.start_execution(tenant, turn, n)

    def resume_execution(
        self, token: str, next_state: str, *, seconds: int = 0, hint: dict[str, Any] | None = None
    ) -> bool:
        self._guard.check_permission(NeededPermission("states:SendTaskSuccess", "stateMachine:turn"))
        return self._inner.resume_execution(token, next_state, seconds=seconds, hint=hint)

    def send_heartbeat(self, token: str) -> bool:
        self._guard.check_permission(NeededPermission("states:SendTaskHeartbeat", "stateMachine:turn"))
        return self._inner.send_heartbeat(token)

    def describe_execution(self, turn: str, n: int) -> tuple[str, str]:
        self._guard.check_permission(NeededPermission("states:DescribeExecution", f"execution:turn:{turn}-{n}"))
        return self._inner.describe_execution(turn, n)


def guard_resources(resources: Resources, workflow: FakeWorkflow, role: Role) -> GuardedResources:
    found = GuardedResources(resources.settings, resources.clock, PermissionGuard(role))
    found.__dict__["workflow"] = GuardedWorkflow(workflow, found.guard)
    return found


def list_needed_permissions(service: str, operation: str, params: dict[str, Any]) -> list[NeededPermission]:
    """The permissions that one request takes, as AWS documents them."""
    match service, operation:
        case "dynamodb", "TransactWriteItems":
            return [
                NeededPermission(TRANSACTION_ACTIONS[kind], LOGICAL_TABLE_NAMES[write["TableName"]])
                for item in params["TransactItems"]
                for kind, write in item.items()
            ]
        case "dynamodb", "BatchGetItem":
            return [
                NeededPermission("dynamodb:BatchGetItem", LOGICAL_TABLE_NAMES[table])
                for table in params["RequestItems"]
            ]
        case "dynamodb", "BatchWriteItem":
            return [
                NeededPermission("dynamodb:BatchWriteItem", LOGICAL_TABLE_NAMES[table])
                for table in params["RequestItems"]
            ]
        case "dynamodb", _:
            index = f"/index/{params['IndexName']}" if "IndexName" in params else ""
            return [NeededPermission(f"dynamodb:{operation}", LOGICAL_TABLE_NAMES[params["TableName"]] + index)]
        case "s3", "ListObjectsV2":
            return [NeededPermission("s3:ListBucket", "Bucket", prefix=params["Prefix"])]
        case "s3", "DeleteObjects":
            return [
                NeededPermission("s3:DeleteObject", f"Bucket/{found['Key']}") for found in params["Delete"]["Objects"]
            ]
        case "s3", _:
            return [NeededPermission(f"s3:{operation}", f"Bucket/{params['Key']}")]
        case "kms", _:
            return [NeededPermission(f"kms:{operation}", "Key", params["EncryptionContext"]["purpose"])]
    raise NotImplementedError(f"guarded.py does not know {service}.{operation} yet.")
