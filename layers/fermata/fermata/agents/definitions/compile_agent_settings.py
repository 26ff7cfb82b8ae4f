"""Check the properties of an agent, and bring them into the one form that turns read."""

from collections.abc import Mapping
from typing import Any

from fermata.agents.definitions.agent_definition import ConnectionDefinition
from fermata.agents.definitions.definition_problems import Place, ProblemList
from fermata.agents.definitions.resolve_operators import (
    SECRET_OPERATOR,
    find_operator_problem,
    has_resolvable_operator,
    iter_operators,
)
from fermata.agents.definitions.source_models import PROPERTIES_MODELS, PROVIDER_OPTIONS_KEYS, PropertiesSource
from fermata.domain.wire_names import to_wire_name

DEFAULT_AGENT_STEPS = 10
DEFAULT_AGENT_RETRIES = 2
_SECRET_PROPERTIES = frozenset({"providerOptions", "byok"})
"""The properties that no model and no page reads."""
_PROVIDER_NAMES = {"fallbackModels": "models"}
"""Properties whose option has another name."""


def compile_properties(
    place: Place, agent_id: str, agent_type: str, written: Mapping[str, Any], problems: ProblemList
) -> dict[str, Any] | None:
    """Return the properties with those of the agent's type under `providerOptions`; None after mistakes were added.

    A property with an operator is checked when a turn resolves it.

    Args:
        place: Where the properties are.
        agent_id: Of the agent, for messages.
        agent_type: Its type.
        written: The properties as they were written.
        problems: Where mistakes are added.
    """
    count = problems.error_count
    _check_operators(place, written, problems)
    if written.get("model") in (None, ""):
        problems.add_error(place, f'"model" is not defined at {agent_id!r}.')
    if "hooks" in written:
        problems.add_error(place.inside("hooks"), "Hooks belong to the agent, beside its properties.")
    known = {name: value for name, value in written.items() if name != "hooks" and not any(iter_operators(value))}
    _check_names(place, agent_type, written.keys() - known.keys() - {"hooks"}, problems)
    given = {name: value for name, value in known.items() if value is not None and (name, value) != ("model", "")}
    problems.check_model(place, PROPERTIES_MODELS[agent_type], {"model": "-"} | given)
    if problems.error_count > count:
        return None
    return _move_provider_options(agent_type, written)


def add_defaults(properties: dict[str, Any], connection: ConnectionDefinition) -> dict[str, Any]:
    """Return the properties with those of the connection and the defaults where they have none.

    Args:
        properties: As `compile_properties` has returned them.
        connection: The connection of the agent.
    """
    inherited = {name: connection.properties.get(name) for name in ("maxOutputTokens", "timeout")}
    defaults = {name: value for name, value in inherited.items() if value is not None}
    defaults |= {"maxSteps": DEFAULT_AGENT_STEPS, "maxRetries": DEFAULT_AGENT_RETRIES}
    return defaults | properties


def list_type_properties(agent_type: str) -> tuple[str, ...]:
    """Return the names of the properties that only one type of agent has."""
    own = PROPERTIES_MODELS[agent_type].model_fields.keys() - PropertiesSource.model_fields.keys()
    return tuple(sorted(map(to_wire_name, own)))


def _check_operators(place: Place, written: Mapping[str, Any], problems: ProblemList) -> None:
    for operator in iter_operators(dict(written)):
        problem = find_operator_problem(operator)
        if not problem and operator.name == SECRET_OPERATOR and operator.path[0] not in _SECRET_PROPERTIES:
            problem = "A secret must not be part of what a model or a page reads. providerOptions may name one."
        if problem:
            problems.add_error(place.inside(*operator.path), problem)


def _check_names(place: Place, agent_type: str, names: set[str], problems: ProblemList) -> None:
    """Refuse unknown properties whose values are operators, which the model of the properties does not see."""
    known = set(map(to_wire_name, PropertiesSource.model_fields)) | set(list_type_properties(agent_type))
    for name in sorted(names - known):
        problems.add_error(place.inside(name), f"{name!r} is not known here.")


def _move_provider_options(agent_type: str, written: Mapping[str, Any]) -> dict[str, Any]:
    own = list_type_properties(agent_type)
    properties = {name: value for name, value in written.items() if name not in own and value is not None}
    options = {_PROVIDER_NAMES.get(name, name): written[name] for name in own if written.get(name) is not None}
    if not options:
        return properties
    key = PROVIDER_OPTIONS_KEYS[agent_type]
    general = properties.get("providerOptions") or {}
    merged = {**(general.get(key) or {}), **options}
    return properties | {"providerOptions": {**general, key: merged}}


def list_dynamic_properties(properties: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of the properties that a turn resolves when it starts."""
    return tuple(sorted(name for name, value in properties.items() if has_resolvable_operator(value)))
