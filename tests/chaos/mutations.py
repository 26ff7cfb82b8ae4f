"""Change the product for a while: drop the condition of writes, or put something else in the place of a function.

What is replaced has to be there, and has to be looked up where it is replaced. A mutant of something that has moved
would be the product itself.
"""

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator
from functools import cache
from importlib.abc import InspectLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, cast

import pytest

import fermata
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
        require_looked_up(target)
        patch.setattr(target, value, raising=False)

    return mutate


def change(target: str, wrap: Callable[[Any], Any]) -> Mutation:
    """Put `wrap(what was there)` in the place of a function."""

    def mutate(patch: pytest.MonkeyPatch) -> None:
        require_looked_up(target)
        module, _, name = target.rpartition(".")
        patch.setattr(target, wrap(getattr(pkgutil.resolve_name(module), name)))

    return mutate


def require_looked_up(target: str) -> None:
    """Raise an AttributeError unless the last name of `target` is looked up in the module or class before it."""
    owner_name, _, name = target.rpartition(".")
    owner = pkgutil.resolve_name(owner_name)
    if isinstance(owner, ModuleType):
        is_looked_up = hasattr(owner, name) and (
            name in _list_looked_up_names(owner_name) or _is_imported_late(owner_name, name)
        )
    else:
        is_looked_up = hasattr(owner, name) or f"self.{name} = " in inspect.getsource(owner)
    if not is_looked_up:
        raise AttributeError(
            f"Nothing looks up {name} in {owner_name}: a mutant that replaces it there changes nothing."
        )


@cache
def _list_looked_up_names(module: str) -> frozenset[str]:
    """Return what the functions of a module look up when they run."""
    return frozenset(name for code in _iter_function_codes(module) for name in code.co_names)


@cache
def _is_imported_late(owner: str, name: str) -> bool:
    """Return whether a function of the package imports a name when it is called, and so finds what is there then."""
    root = Path(fermata.__path__[0])
    files = [path for path in root.rglob("*.py") if f"    from {owner} import" in path.read_text()]
    modules = [".".join(path.relative_to(root.parent).with_suffix("").parts) for path in files]
    return any({owner, name} <= {*code.co_names} for module in modules for code in _iter_function_codes(module))


def _iter_function_codes(module: str) -> Iterator[CodeType]:
    code = cast(InspectLoader, importlib.import_module(module).__loader__).get_code(module)
    assert code is not None
    yield from _iter_inner_codes(code)


def _iter_inner_codes(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _iter_inner_codes(constant)


def together(*mutations: Mutation) -> Mutation:
    def mutate(patch: pytest.MonkeyPatch) -> None:
        for mutation in mutations:
            mutation(patch)

    return mutate
