"""Resources that check every AWS call against the role of a function.

The local cloud enforces no permissions, so a missing permission shows only here.
"""

from dataclasses import dataclass, field
from typing import Any

from fermata.aws.resources import Resources
from fermata.domain.value_dataclass import value_dataclass
from tests.template.iam import Role
from tests.unit.turns.stage import FakeWorkflow

LOGICAL_TABLE_NAMES = {
    "conversations": "ConversationsTable",
    "bridges": "BridgesTable",
    "pricing": "PricingTable",
    "usage": "UsageTable",
    "settings": "SettingsTable",
    "content": "ContentTable",
}
"""The logical ids of the tables of tests/resources.py in the template."""
TRANSACTION_ACTIONS = {
    "Put": "dynamodb:PutItem",
    "Update": "dynamodb:UpdateItem",
    "Delete": "dynamodb:DeleteItem",
    "ConditionCheck": "dynamodb:ConditionCheckItem",
}


@dataclass(frozen=True)
class NeededPermission:
    """A permission that a call needs: an action on a resource, with the key's purpose or the prefix of a list."""

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
    """Checks calls against a role."""

    role: Role
    requested: set[NeededPermission] = field(default_factory=set)
    refused: list[str] = field(default_factory=list)
    """Recorded as well as raised, because some code continues after an error."""

    def check_call(self, params: dict[str, Any], model: Any, **_: Any) -> None:
        """Botocore calls this before each request is built."""
        for need in list_needed_permissions(model.service_model.service_name, model.name, params):
            self.check_permission(need)

    def check_permission(self, need: NeededPermission) -> None:
        self.requested.add(need)
        if not need.is_granted_by(self.role):
            self.refused.append(str(need))
            raise AssertionError(f"{self.role.name} does not allow {need}")


@value_dataclass(frozen=True)
class GuardedResources(Resources):
    """Resources whose clients check every call."""

    guard: PermissionGuard

    def _client(self, service: Any) -> Any:
        client = super()._client(service)
        client.meta.events.register("before-parameter-build", self.guard.check_call)
        return client


class GuardedWorkflow:
    """The stage's workflow, called with a role."""

    def __init__(self, inner: FakeWorkflow, guard: PermissionGuard) -> None:
        self._inner, self._guard = inner, guard

    def start_execution(self, tenant: str, turn: str, n: int, *, hint: dict[str, Any] | None = None) -> None:
        self._guard.check_permission(NeededPermission("states:StartExecution", "stateMachine:turn"))
        self._inner.start_execution(tenant, turn, n, hint=hint)

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
    guarded = GuardedResources(resources.settings, resources.clock, PermissionGuard(role))
    guarded.__dict__["workflow"] = GuardedWorkflow(workflow, guarded.guard)
    return guarded


def list_needed_permissions(service: str, operation: str, params: dict[str, Any]) -> list[NeededPermission]:
    """Return the permissions that a request needs, as AWS documents them."""
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
        case "s3", "ListObjectVersions":
            return [NeededPermission("s3:ListBucketVersions", "Bucket", prefix=params["Prefix"])]
        case "s3", "DeleteObjects":
            return [
                NeededPermission(
                    f"s3:{'DeleteObjectVersion' if 'VersionId' in entry else 'DeleteObject'}", f"Bucket/{entry['Key']}"
                )
                for entry in params["Delete"]["Objects"]
            ]
        case "s3", "HeadObject":
            return [NeededPermission("s3:GetObject", f"Bucket/{params['Key']}")]
        case "s3", _:
            return [NeededPermission(f"s3:{operation}", f"Bucket/{params['Key']}")]
        case "s3vectors", "ListIndexes":
            return [NeededPermission("s3vectors:ListIndexes", "VectorBucket")]
        case "s3vectors", _:
            actions = [operation, *(["GetVectors"] if "filter" in params else [])]
            return [NeededPermission(f"s3vectors:{action}", "VectorBucket/index/any") for action in actions]
        case "kms", _:
            return [NeededPermission(f"kms:{operation}", "Key", params["EncryptionContext"]["purpose"])]
    raise NotImplementedError(f"permission_guard.py does not know {service}.{operation} yet.")
