"""Resolve operators: objects such as `{_user: name}`, which stand for a value of the turn or its caller.

    _payload   a member of the turn's context, by its path: `urlQuery.lang`; `true` for all of it
    _user      a member of the user: `id`, `sub`, `name` or `roles`; `true` for all of it
    _secret    the name of a secret of the tenant. It stays a reference, and is opened only when it is used.

Instead of a path, the parameter can be `{key: <path>, default: <value>}`. Whatever is missing is null.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from fermata.domain.caller import Caller
from fermata.domain.page_context import AgentContext

OPERATORS = ("_payload", "_user", "_secret")
SECRET_OPERATOR = "_secret"  # noqa: S105 (the name of an operator)
_Path = tuple[str | int, ...]


class FoundOperator(NamedTuple):
    """An operator in a value: where it is, what it is called, and its parameter."""

    path: _Path
    name: str
    parameter: Any


def read_operator(value: Any) -> tuple[str, Any] | None:
    """Return the name and the parameter of an operator; None for any other value."""
    if not isinstance(value, Mapping) or len(value) != 1:
        return None
    name, parameter = next(iter(value.items()))
    return (name, parameter) if isinstance(name, str) and name.startswith("_") else None


def iter_operators(value: Any, path: _Path = ()) -> Iterator[FoundOperator]:
    """Yield the operators in a value, also unknown ones.

    Args:
        value: JSON.
        path: Where the value is.
    """
    if found := read_operator(value):
        yield FoundOperator(path, *found)
    elif isinstance(value, Mapping):
        for name, member in value.items():
            yield from iter_operators(member, (*path, name))
    elif isinstance(value, (list, tuple)):
        for index, member in enumerate(value):
            yield from iter_operators(member, (*path, index))


def find_operator_problem(operator: FoundOperator) -> str:
    """Return what is wrong with an operator; empty if nothing is."""
    if operator.name not in OPERATORS:
        return f"There is no operator {operator.name}. The operators are {', '.join(OPERATORS)}."
    if operator.name == SECRET_OPERATOR:
        is_name = isinstance(operator.parameter, str) and operator.parameter
        return "" if is_name else "_secret needs the name of a secret."
    key = operator.parameter.get("key") if isinstance(operator.parameter, Mapping) else operator.parameter
    return "" if key is True or (isinstance(key, str) and key) else f"{operator.name} needs a path, or true."


def has_resolvable_operator(value: Any) -> bool:
    """Return whether a value contains operators that a turn resolves when it starts; secrets are not among them."""
    return any(operator.name != SECRET_OPERATOR for operator in iter_operators(value))


def resolve_operators(value: Any, context: AgentContext, caller: Caller) -> Any:
    """Return a value with its operators resolved. References to secrets stay.

    Args:
        value: JSON in which every operator is a known one.
        context: What the client says about the turn.
        caller: The user of the turn.
    """
    payload = {name: member for name, member in context.to_wire().items() if name != "sharedStateReadOnly"}
    return _resolve(value, {"_payload": payload, "_user": _describe_user(caller)})


def _describe_user(caller: Caller) -> dict[str, Any]:
    return {"id": caller.user, "sub": caller.user, "name": caller.label, "roles": sorted(caller.capabilities)}


def _resolve(value: Any, sources: Mapping[str, Any]) -> Any:
    if found := read_operator(value):
        name, parameter = found
        return value if name == SECRET_OPERATOR else _read_source(sources[name], parameter)
    if isinstance(value, Mapping):
        return {name: _resolve(member, sources) for name, member in value.items()}
    if isinstance(value, (list, tuple)):
        return [_resolve(member, sources) for member in value]
    return value


def _read_source(source: Any, parameter: Any) -> Any:
    default = parameter.get("default") if isinstance(parameter, Mapping) else None
    key = parameter.get("key") if isinstance(parameter, Mapping) else parameter
    found = source if key is True else _read_path(source, str(key))
    return default if found is None else found


def _read_path(source: Any, path: str) -> Any:
    found = source
    for part in path.split("."):
        if isinstance(found, Mapping):
            found = found.get(part)
        elif isinstance(found, (list, tuple)) and part.isascii() and part.isdigit() and int(part) < len(found):
            found = found[int(part)]
        else:
            return None
    return found
