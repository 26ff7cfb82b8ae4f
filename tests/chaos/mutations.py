"""Change the product for a while: drop the condition of writes, or put something else in the place of a function."""

import pkgutil
from collections.abc import Callable
from typing import Any

import pytest

from fermata.aws import dynamodb_client
from fermata.aws.dynamodb_items_and_writes import Write

Mutation = Callable[[pytest.MonkeyPatch], None]


def drop_condition(table: str, sort_key: str, *, keep_version: bool = False) -> Mutation:
    """Send writes to rows of one kind without their condition."""

    def mutate(patch: pytest.MonkeyPatch) -> None:
        build = dynamodb_client.build_write_request

        def build_without_condition(write: Write) -> tuple[str, dict[str, Any]]:
            operation, request = build(write)
            key = request.get("Item") or request["Key"]
            if operation != "ConditionCheck" and request["TableName"] == table and key["sk"]["S"].startswith(sort_key):
                request.pop("ConditionExpression", None)
                used = request.get("UpdateExpression", "")
                _drop_unused(request, "ExpressionAttributeValues", used)
                _drop_unused(request, "ExpressionAttributeNames", used)
            return operation, request

        patch.setattr(dynamodb_client, "build_write_request", build_without_condition)

    return mutate


def _drop_unused(request: dict[str, Any], member: str, expression: str) -> None:
    used = {name: value for name, value in request.get(member, {}).items() if name in expression}
    request.pop(member, None)
    if used:
        request[member] = used


def replace(target: str, value: Any) -> Mutation:
    """Put something else in the place of a function or attribute."""

    def mutate(patch: pytest.MonkeyPatch) -> None:
        patch.setattr(target, value, raising=False)

    return mutate


def change(target: str, wrap: Callable[[Any], Any]) -> Mutation:
    """Put `wrap(what was there)` in the place of a function."""

    def mutate(patch: pytest.MonkeyPatch) -> None:
        module, _, name = target.rpartition(".")
        patch.setattr(target, wrap(getattr(pkgutil.resolve_name(module), name)))

    return mutate


def together(*mutations: Mutation) -> Mutation:
    def mutate(patch: pytest.MonkeyPatch) -> None:
        for mutation in mutations:
            mutation(patch)

    return mutate
