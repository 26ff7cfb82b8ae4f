"""Evaluate the permissions of a role as IAM does: for an action, a resource, and the request's context."""

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from tests.template.templates import Template, function_of_alias, resources_of_type

CONDITIONS = {"purpose": "kms:EncryptionContext:purpose", "prefix": "s3:prefix"}


@dataclass(frozen=True)
class Statement:
    actions: tuple[str, ...]
    resources: tuple[str, ...]
    equals: dict[str, tuple[str, ...]]
    """The condition keys of StringEquals and StringLike, with the patterns that their values may match."""

    def allows(self, action: str, resource: str, context: dict[str, str]) -> bool:
        return (
            any(fnmatchcase(action, pattern) for pattern in self.actions)
            and any(fnmatchcase(resource, pattern) for pattern in self.resources)
            and all(_is_one_of(context.get(key, ""), patterns) for key, patterns in self.equals.items())
        )


@dataclass(frozen=True)
class Role:
    name: str
    statements: tuple[Statement, ...]

    def allows(self, action: str, resource: str, **context: str) -> bool:
        """Say whether the role has a permission.

        Args:
            context: `purpose` in the encryption context of KMS, or `prefix` of a list request of S3.
        """
        full = {CONDITIONS[key]: value for key, value in context.items()}
        return any(statement.allows(action, resource, full) for statement in self.statements)

    def actions(self, service: str = "") -> set[str]:
        return {action for statement in self.statements for action in statement.actions if action.startswith(service)}


def read_roles(template: Template) -> dict[str, Role]:
    """Return every role of the template, by logical id."""
    return {name: Role(name, _statements(role)) for name, role in resources_of_type(template, "AWS::IAM::Role").items()}


def roles_by_function(template: Template) -> dict[str, Role]:
    """Return the role of each function, by the function's folder."""
    roles = read_roles(template)
    functions = resources_of_type(template, "AWS::Lambda::Function").values()
    return {function_folder(function): roles[function["Role"]["Fn::GetAtt"][0]] for function in functions}


def function_folder(function: Template) -> str:
    return str(function["Code"]["S3Key"]).removeprefix("functions/")


def allow_statements(document: Template) -> tuple[Statement, ...]:
    """Return the Allow statements of a policy document."""
    return tuple(_statement(statement) for statement in document["Statement"] if statement["Effect"] == "Allow")


def short_resource_name(value: Any) -> str:
    """Shorten a resource: to the logical id of an ARN, or to the part after the account id if it is written out."""
    if isinstance(value, str):
        return value
    if "Ref" in value:
        return f"{function_of_alias(value)}:live"
    if "Fn::GetAtt" in value:
        name, attribute = value["Fn::GetAtt"]
        assert attribute in ("Arn", "StreamArn", "VectorBucketArn"), value
        return f"{name}/stream" if attribute == "StreamArn" else str(name)
    text = str(value["Fn::Sub"]).rpartition("${AWS::AccountId}:")[2]
    text = text.replace(".VectorBucketArn}", "}")
    return text.replace(".Arn}", "}").replace("${AWS::StackName}-", "").replace("${", "").replace("}", "")


def _statements(role: Template) -> tuple[Statement, ...]:
    return tuple(
        statement for policy in role.get("Policies", []) for statement in allow_statements(policy["PolicyDocument"])
    )


def _statement(document: Template) -> Statement:
    conditions = document.get("Condition", {})
    assert set(conditions) <= {"StringEquals", "StringLike", "ArnLike"}, f"iam.py does not understand {conditions}"
    named = conditions.get("StringEquals", {}) | conditions.get("StringLike", {})
    equals = {key: tuple(_listed(value)) for key, value in named.items()}
    resources = tuple(short_resource_name(resource) for resource in _listed(document["Resource"]))
    return Statement(tuple(_listed(document["Action"])), resources, equals)


def _is_one_of(value: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(value, pattern) for pattern in patterns)


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
