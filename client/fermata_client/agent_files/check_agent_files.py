"""Compile files that define agents without a service, as the service will."""

from typing import Any

import click

from fermata_client.agent_files.agent_files import AgentFiles
from fermata_client.service.json_types import JsonObject


def check_agent_files(files: AgentFiles) -> tuple[list[JsonObject], list[JsonObject]]:
    """Return the mistakes and warnings of some files, and the prompts that test the agents.

    Raises:
        click.ClickException: The package of the service is not installed.
    """
    try:
        from fermata.agents.definitions.compile_definitions import compile_definitions
        from fermata.agents.definitions.definition_problems import SourceDocument
        from fermata.drivers.transport.url_guard import find_unreachable_address
    except ModuleNotFoundError as error:
        raise click.ClickException(
            f"This needs the service's own package ({error.name} is missing): pip install -e layers/fermata"
        ) from error

    def find_bundle(base_path: str) -> str:
        if base_path not in files.folders:
            raise ValueError("does not exist")
        return base_path

    documents = [SourceDocument(name, one.value, one.lines) for name, one in files.documents.items()]
    compiled = compile_definitions(documents, find_bundle, find_unreachable_address)
    problems = [*(one.to_json() for one in files.mistakes), *(one.to_wire() for one in compiled.problems)]
    return problems, [test.to_wire() for test in compiled.tests]


def build_format_schema() -> dict[str, Any]:
    """Return the JSON Schema of the format, from which editors complete it.

    Raises:
        click.ClickException: The package of the service is not installed.
    """
    try:
        from fermata.agents.definitions.definition_schema import build_definition_schema
    except ModuleNotFoundError as error:
        raise click.ClickException(
            f"This needs the service's own package ({error.name} is missing): pip install -e layers/fermata"
        ) from error
    return build_definition_schema()
