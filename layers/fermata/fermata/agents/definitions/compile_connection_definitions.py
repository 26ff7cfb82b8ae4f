"""Compile the connections and endpoints that agents use."""

from collections.abc import Mapping
from typing import Any

from fermata.agents.definitions.agent_definition import ConnectionDefinition, EndpointDefinition
from fermata.agents.definitions.connection_types import CONNECTION_TYPES
from fermata.agents.definitions.definition_names import find_item_id_problem
from fermata.agents.definitions.definition_problems import Place, ProblemList
from fermata.agents.definitions.resolve_operators import (
    SECRET_OPERATOR,
    find_operator_problem,
    iter_operators,
    read_operator,
)
from fermata.agents.definitions.source_models import (
    ConnectionSource,
    EndpointSource,
    McpConnectionProperties,
    ModelConnectionProperties,
)

_PLAIN_KEY = (
    "A key does not belong into a file: refer to it as {_secret: NAME}, and enter it by `fermata secrets set NAME`."
)


def compile_connection(place: Place, value: Any, problems: ProblemList) -> ConnectionDefinition | None:
    """Return a connection; None after its mistakes were added.

    Args:
        place: Where it is.
        value: The item of the list.
        problems: Where mistakes are added.
    """
    source = problems.check_model(place, ConnectionSource, value)
    if source is None or not _check_id(place, "connection", source.id, problems):
        return None
    within = place.inside("properties")
    is_valid = check_secret_references(within, source.properties, problems)
    if source.type == "Mcp":
        properties = problems.check_model(within, McpConnectionProperties, source.properties)
        is_complete = properties is not None and check_mcp_server(within, properties.to_wire(), problems)
    elif isinstance(source.properties.get("apiKey"), str):
        problems.add_error(within.inside("apiKey"), _PLAIN_KEY)
        return None
    else:
        properties = problems.check_model(within, ModelConnectionProperties, source.properties)
        is_complete = properties is not None and _check_key(within, source, problems)
    if not is_valid or not is_complete:
        return None
    written = {name: value for name, value in source.properties.items() if name != "credential"}
    credential = str(source.properties.get("credential") or "")
    return ConnectionDefinition(id=source.id, type=source.type, credential=credential, properties=written)


def compile_endpoint(place: Place, value: Any, problems: ProblemList) -> EndpointDefinition | None:
    """Return an endpoint; None after its mistakes were added.

    Args:
        place: Where it is.
        value: The item of the list.
        problems: Where mistakes are added.
    """
    source = problems.check_model(place, EndpointSource, value)
    if source is None or not _check_id(place, "endpoint", source.id, problems):
        return None
    is_valid = check_url(place.inside("url"), source.url, problems)
    is_valid &= check_secret_references(place.inside("headers"), source.headers, problems)
    return EndpointDefinition.from_wire(source.to_wire()) if is_valid else None


def _check_id(place: Place, kind: str, item_id: str, problems: ProblemList) -> bool:
    if problem := find_item_id_problem(kind, item_id):
        problems.add_error(place.inside("id"), problem)
    return not problem


def check_secret_references(place: Place, value: Any, problems: ProblemList) -> bool:
    """Add a mistake for each operator that is no reference to a secret. Return whether there is none.

    Args:
        place: Where the value is.
        value: JSON.
        problems: Where mistakes are added.
    """
    count = len(problems.found)
    for operator in iter_operators(value):
        problem = find_operator_problem(operator)
        if not problem and operator.name != SECRET_OPERATOR:
            problem = f"{operator.name} has no value here, outside of an agent. Only _secret has."
        if problem:
            problems.add_error(place.inside(*operator.path), problem)
    return len(problems.found) == count


def check_mcp_server(place: Place, source: Mapping[str, Any], problems: ProblemList, name: str = "") -> bool:
    """Check that an MCP server can be reached as it is described. Return whether it can.

    Args:
        place: Where the server is described.
        source: Its members.
        problems: Where mistakes are added.
        name: What it is called in messages.
    """
    name = name or "The MCP server"
    if source.get("transport") == "stdio":
        if not source.get("command"):
            problems.add_error(place, f"{name} is missing command, which the transport stdio needs.")
        elif problems.find_address_problem:
            problems.add_warning(place, f"{name} is a program, which only a service on this machine can start.")
        return bool(source.get("command"))
    if not source.get("url"):
        problems.add_error(place, f"{name} is missing url.")
        return False
    return check_url(place.inside("url"), source["url"], problems)


def check_url(place: Place, url: str, problems: ProblemList) -> bool:
    """Check that an address is one of HTTP. Whether it may be called is checked where it is.

    Args:
        place: Where the address is.
        url: The address.
        problems: Where mistakes are added.
    """
    if url.startswith(("https://", "http://")):
        if problems.find_address_problem and (problem := problems.find_address_problem(url)):
            problems.add_warning(place, f"A deployed service cannot call {url!r}: {problem}")
        return True
    problems.add_error(place, f"{url!r} is no address: it begins with https:// or http://.")
    return False


def _check_key(place: Place, source: ConnectionSource, problems: ProblemList) -> bool:
    properties = source.properties
    kind = CONNECTION_TYPES[source.type]
    key = properties.get("apiKey")
    count = len(problems.found)
    if key is not None and (read_operator(key) or ("", ""))[0] != SECRET_OPERATOR:
        problems.add_error(place.inside("apiKey"), _PLAIN_KEY)
    if "credential" in properties and (key is not None or "baseURL" in properties):
        problems.add_error(place.inside("credential"), "A connection has a credential, or an apiKey and baseURL.")
    if "credential" not in properties and key is None and not kind.needs_url:
        problems.add_error(place, f"The connection {source.id!r} needs apiKey: {{_secret: NAME}}, or credential.")
    if "credential" not in properties and kind.needs_url and "baseURL" not in properties:
        problems.add_error(place, f"The connection {source.id!r} needs baseURL, or credential.")
    if "baseURL" in properties:
        check_url(place.inside("baseURL"), properties["baseURL"], problems)
    return len(problems.found) == count
