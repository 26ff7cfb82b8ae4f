"""JSON of others may be nested more deeply than Python reads: wherever text that is no JSON is expected, so is that."""

import ast
from collections.abc import Iterator
from pathlib import Path

import mcp_types

from fermata.drivers.error_mapping import error_from_response
from fermata.mcp_sources.mcp_results import build_mcp_output
from tests.growth.package_patterns import ROOT

NESTED = "[" * 100_000


def iter_forgetful_handlers(path: Path) -> Iterator[str]:
    """Iterate over where a file expects text that is no JSON, and not one that is nested too deeply."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Try) and any("json.loads(" in ast.unparse(one) for one in node.body):
            caught = " ".join(ast.unparse(one.type) for one in node.handlers if one.type is not None)
            if "ValueError" in caught and "RecursionError" not in caught:
                yield f"{path.name}:{node.lineno}"


def test_who_expects_that_text_is_no_json_expects_that_it_is_nested_too_deeply() -> None:
    files = sorted((ROOT / "layers" / "fermata" / "fermata").rglob("*.py"))
    found = [place for path in files if "json.loads(" in path.read_text() for place in iter_forgetful_handlers(path)]
    assert found == []


def test_an_error_of_a_provider_that_is_nested_too_deeply_is_its_text() -> None:
    error = error_from_response("Provider", 400, {}, NESTED.encode(), "key")
    assert "[[[" in error.message


def test_a_text_of_a_tool_server_that_is_nested_too_deeply_is_another_text_than_its_data() -> None:
    text = mcp_types.TextContent(type="text", text=NESTED)
    output = build_mcp_output(mcp_types.CallToolResult(content=[text], structured_content={"a": 1}))
    assert output.data == {"structuredContent": {"a": 1}, "text": NESTED}
