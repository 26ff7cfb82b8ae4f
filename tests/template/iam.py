"""What a role may do, asked the way IAM asks: an action, a resource, the request's context."""

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from tests.template.templates import Template, resources_of_type

CONDITIONS = {"purpose": "kms:EncryptionContext:purpose", "prefix": "s3:prefix"}


@dataclass(frozen=True)
class Statement:
    actions: tuple[str, ...]
    resources: tuple[str, ...]
    equals: dict[str, tuple[str, ...]]
    """Condition keys of StringEquals and StringLike, and the values (patterns) they may have."""

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
        """The condition keys our statements use: `purpose` in KMS's encryption context, `prefix` of what S3 lists."""
        full = {CONDITIONS[key]: value for key, value in context.items()}
        return any(statement.allows(action, resource, full) for statement in self.statements)

    def actions(self, service: str = "") -> set[str]:
        return {action for one in self.statements for action in one.actions if action.startswith(service)}


def read_roles(template: Template) -> dict[str, Role]:
    """Every role that the template makes, by logical name."""
    return {
        name: Role(name, _statements(found)) for name, found in resources_of_type(template, "AWS::IAM::Role").items()
    }


def roles_by_function(template: Template) -> dict[str, Role]:
    """The role of each function, by the function's folder."""
    found, functions = read_roles(template), resources_of_type(template, "AWS::Lambda::Function").values()
    return {function_folder(function): found[function["Role"]["Fn::GetAtt"][0]] for function in functions}


def function_folder(function: Template) -> str:
    return str(function["Code"]["S3Key"]).removeprefix("functions/")


def allow_statements(document: Template) -> tuple[Statement, ...]:
    """The Allow statements of a policy document."""
    return tuple(_statement(found) for found in document["Statement"] if found["Effect"] == "Allow")


def short_resource_name(value: Any) -> str:
    """A resource in short: the logical name for an ARN, and the tail behind the account for one that is spelled."""
    if isinstance(value, str):
        return value
    if "Fn::GetAtt" in value:
        name, attribute = value["Fn::GetAtt"]
        assert attribute in ("Arn", "StreamArn"), value
        return str(name) if attribute == "Arn" else f"{name}/stream"
    text = str(value["Fn::Sub"]).rpartition("${AWS::AccountId}:")[2]
    return text.replace(".Arn}", "}").replace("${AWS::StackName}-", "").replace("${", "").replace("}", "")


def _statements(role: Template) -> tuple[Statement, ...]:
    return tuple(found for policy in role.get("Policies", []) for found in allow_statements(policy["PolicyDocument"]))


def _statement(found: Template) -> Statement:
    conditions = found.get("Condition", {})
    assert set(conditions) <= {"StringEquals", "StringLike", "ArnLike"}, f"iam.py does not understand {conditions}"
    named = conditions.get("StringEquals", {}) | conditions.get("StringLike", {})
    equals = {key: tuple(_listed(value)) for key, value in named.items()}
    resources = tuple(short_resource_name(one) for one in _listed(found["Resource"]))
    return Statement(tuple(_listed(found["Action"])), resources, equals)


def _is_one_of(value: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(value, pattern) for pattern in patterns)


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
