"""Build the JSON Schema of the format in which tenants define agents, from which editors complete it."""

from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from fermata.agents.definitions.definition_names import TOOL_NAME_PATTERN
from fermata.agents.definitions.source_models import (
    PROPERTIES_MODELS,
    DefinitionFile,
    McpConnectionProperties,
    ModelConnectionProperties,
)
from fermata.agents.tool_sources.built_in_tools import list_shared_toolset_names
from fermata.domain.agent_ids import AGENT_ID_PATTERN

SCHEMA_URL = "https://json-schema.org/draft/2020-12/schema"
_OPERATOR = {"$ref": "#/$defs/Operator"}


def build_definition_schema() -> dict[str, Any]:
    """Return the schema of a file that defines agents."""
    models: tuple[type[BaseModel], ...] = (
        DefinitionFile,
        ModelConnectionProperties,
        McpConnectionProperties,
        *PROPERTIES_MODELS.values(),
    )
    _, generated = models_json_schema([(model, "validation") for model in models], by_alias=True)
    definitions: dict[str, Any] = generated["$defs"]
    for name, definition in definitions.items():
        if definition.get("type") == "object":
            definition["additionalProperties"] = False
        definition["title"] = name
    definitions["Operator"] = _OPERATOR_SCHEMA
    for model in PROPERTIES_MODELS.values():
        _allow_operators(definitions[model.__name__])
    _describe_agents(definitions["AgentSource"])
    _describe_connections(definitions["ConnectionSource"])
    _describe_toolsets(definitions)
    definitions["ToolSource"]["properties"]["name"]["anyOf"][0]["pattern"] = TOOL_NAME_PATTERN
    top = definitions.pop("DefinitionFile")
    return {"$schema": SCHEMA_URL, **top, "title": "Agents of a Fermata workspace", "$defs": definitions}


_OPERATOR_SCHEMA: dict[str, Any] = {
    "title": "Operator",
    "description": "A value that is known when a turn starts: of the page (_payload) or of its user (_user).",
    "type": "object",
    "minProperties": 1,
    "maxProperties": 1,
    "properties": {name: {} for name in ("_payload", "_user", "_secret", "_ref")},
    "additionalProperties": False,
}


def _allow_operators(definition: dict[str, Any]) -> None:
    """Let each property be an operator as well."""
    definition["properties"].pop("hooks", None)
    definition["properties"] = {
        name: {"anyOf": [schema, _OPERATOR]} | {key: schema[key] for key in ("description",) if key in schema}
        for name, schema in definition["properties"].items()
    }


def _describe_agents(definition: dict[str, Any]) -> None:
    """Say which properties each type of agent has."""
    definition["properties"]["id"]["pattern"] = f"^{AGENT_ID_PATTERN}$"
    models = {agent_type: {"$ref": f"#/$defs/{model.__name__}"} for agent_type, model in PROPERTIES_MODELS.items()}
    definition["allOf"] = [_build_rule(*rule) for rule in models.items()]


def _describe_toolsets(definitions: dict[str, Any]) -> None:
    """Say which toolsets there are."""
    names = list(list_shared_toolset_names())
    definitions["ToolsetSource"]["properties"]["toolset"] = {"type": "string", "enum": names}
    items = definitions["AgentSource"]["properties"]["toolsets"]["items"]
    items["anyOf"] = [{"type": "string", "enum": names}, {"$ref": "#/$defs/ToolsetSource"}]


def _describe_connections(definition: dict[str, Any]) -> None:
    model_types = [name for name in definition["properties"]["type"]["enum"] if name != "Mcp"]
    definition["allOf"] = [
        _build_rule("Mcp", {"$ref": "#/$defs/McpConnectionProperties"}),
        {
            "if": {"properties": {"type": {"enum": model_types}}},
            "then": {"properties": {"properties": {"$ref": "#/$defs/ModelConnectionProperties"}}},
        },
    ]


def _build_rule(type_name: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {
        "if": {"properties": {"type": {"const": type_name}}},
        "then": {"properties": {"properties": schema}},
    }
