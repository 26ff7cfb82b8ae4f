"""Offer the four tools that read the files of an agent."""

from collections.abc import Callable
from functools import partial
from typing import Any

from fermata.agents.definitions.agent_definition import AgentDefinition
from fermata.agents.files.bundle_store import open_bundle
from fermata.agents.files.file_tools import (
    ListAgentFilesInput,
    OpenedBundle,
    ReadAgentFileInput,
    SearchAgentFilesInput,
    StatAgentFileInput,
)
from fermata.aws.resources import Resources
from fermata.tools.tool import Access, Execution, ResultPolicy, Tool, ToolContext, ToolHandler, ToolInput

FILE_TOOLSET = "files"
FILE_TOOL_NAMES = ("read-file", "list-files", "search-files", "stat-file")
MAX_RESULT_CHARS = 600_000
"""More than `read-file` returns of a large file, so that its own note is not cut off."""
SEARCH_SECONDS = 60.0


def list_file_tools(resources: Resources, definition: AgentDefinition) -> tuple[Tool, ...]:
    """Return the file tools of an agent of a tenant; none for an agent without files.

    Args:
        resources: The bucket, and the cache of the process.
        definition: The agent.
    """
    files = definition.files
    return () if files is None else build_file_tools(partial(open_bundle, resources, files.bundle))


def build_file_tools(open_files: Callable[[], OpenedBundle]) -> tuple[Tool, ...]:
    """Return the file tools of an agent.

    Args:
        open_files: Returns the agent's files; called by each call.
    """

    def read_file(tool_input: ReadAgentFileInput, _context: ToolContext) -> str:
        return open_files().read_file(tool_input.path)

    def list_files(tool_input: ListAgentFilesInput, _context: ToolContext) -> list[dict[str, Any]]:
        return open_files().list_files(tool_input.path, tool_input.glob)

    def search_files(tool_input: SearchAgentFilesInput, _context: ToolContext) -> list[dict[str, Any]]:
        return open_files().search_files(tool_input.query, tool_input.glob)

    def stat_file(tool_input: StatAgentFileInput, _context: ToolContext) -> dict[str, Any]:
        return open_files().stat_file(tool_input.path)

    return (
        _build_tool("read-file", "Reads a text file.", ReadAgentFileInput, read_file),
        _build_tool(
            "list-files",
            "Lists the files and directories of a directory. With a glob it looks into all directories below, too.",
            ListAgentFilesInput,
            list_files,
        ),
        _build_tool(
            "search-files",
            "Finds lines that contain a text in all files, whatever its case, with the lines around them. "
            "At most 200 lines are returned.",
            SearchAgentFilesInput,
            search_files,
        ),
        _build_tool("stat-file", "Returns size, type and dates of a file or directory.", StatAgentFileInput, stat_file),
    )


def _build_tool(name: str, description: str, input_model: type[ToolInput], handler: ToolHandler[Any]) -> Tool:
    return Tool(
        name=name,
        toolset=FILE_TOOLSET,
        description=description,
        execution=Execution.SERVER,
        access=Access.READ,
        input_model=input_model,
        handler=handler,
        timeout_seconds=SEARCH_SECONDS,
        idempotent=True,
        result_policy=ResultPolicy(max_chars=MAX_RESULT_CHARS),
    )
