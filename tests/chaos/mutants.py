"""Mutants: the product without one rule of its protocol. The judge must notice that each of them is missing.

Most rules are conditions of writes, so most mutants drop the condition of the writes to one kind of row.
"""

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from fermata.aws import dynamodb_client
from fermata.aws.dynamodb_types import Write

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
    def mutate(patch: pytest.MonkeyPatch) -> None:
        patch.setattr(target, value)

    return mutate


_numbers = itertools.count()


def _start_always(resources: Any, caller: Any, key: str, digest: str, start: Callable[[], Any]) -> Any:
    return start()


def _hash_never_alike(_result: object) -> str:
    return f"{next(_numbers)}"


def _never(*_: object, **__: object) -> None:
    return None


MUTANTS: dict[str, Mutation] = {
    "an append overwrites the entry that is there": drop_condition("bridges", "e#"),
    "a pause changes whatever its version is": drop_condition("bridges", "p#"),
    "a claim is taken from the turn that has it": drop_condition("conversations", "meta"),
    "an ended turn goes on": replace("fermata.turns.turn_log.TurnLog._check_may_write", _never),
    "an entry that others wrote is not read": replace("fermata.turns.turn_log.TurnLog.accept_entry", _never),
    "the same prompt starts another turn": replace("fermata.turns.start.start_turn.start_once", _start_always),
    "open calls stay open when a turn ends": replace("fermata.turns.end.end_turn.build_closing_events", lambda *_: ()),
    "a hold is never settled": replace("fermata.usage.usage_writes.build_settlement_writes", lambda *_, **__: []),
    "a repeated answer is another answer": replace(
        "fermata.turns.answer.submit_tool_result.hash_result", _hash_never_alike
    ),
}
