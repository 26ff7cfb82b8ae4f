"""Every tool of the CMS's documents is there under its name, or it is known who brings it."""

from typing import Any

import pytest

from fermata.remote_tools.built_in.built_in_tools import BUILT_IN_TOOLS_BY_NAME
from fermata.tools.cms.toolset import CMS_TOOLSET
from fermata.tools.tool import Access, Approval
from tests.shared_cases.cms_cases import read_cms_tools

TOOLS = {tool["name"]: tool for tool in read_cms_tools()}
OTHERS = {
    **dict.fromkeys(("web_quickSearch", "web_deepResearch", "web_fetchContent"), "web research"),
    **dict.fromkeys(("http_get", "http_post"), "HTTP through the address guard"),
    **dict.fromkeys(("pexels_searchPhotos", "pexels_downloadPhoto"), "built-in tools of a workspace, with its key"),
}
"""Tools that are not made in this module's families, and where they belong."""
REQUIRED_INSTEAD = {"cms_createPage", "cms_createPageWithContent"}
"""Tools that take `title` for `name`, as one of two documents calls it."""
HERE = [name for name in TOOLS if name not in OTHERS]


def test_each_of_the_53_tools_is_here_or_a_built_in_tool_of_a_workspace() -> None:
    assert len(TOOLS) == 53
    assert OTHERS.keys() <= BUILT_IN_TOOLS_BY_NAME.keys()
    known = {tool.name for tool in CMS_TOOLSET.tools}
    assert set(HERE) <= known
    assert known <= set(TOOLS), "a tool that no document names"


@pytest.mark.parametrize("name", HERE)
def test_a_tool_has_the_names_the_risk_and_the_gates_of_its_documents(name: str) -> None:
    known, tool = TOOLS[name], CMS_TOOLSET.find_tool(name)
    assert tool is not None
    assert tool.name == name
    registry = known["registry_name"].split("(later ")
    for alias in (part.strip(" )") for part in registry if part.startswith("cms_")):
        assert CMS_TOOLSET.find_tool(alias) is tool, alias
    assert tool.risk.value == known["risk"]
    assert tool.access is Access(known["capability"])
    assert (tool.approval is Approval.ALWAYS) == known["requires_approval"]
    assert (tool.confirmation_flag == "confirmed") == (known["confirmation"] == "flag")


@pytest.mark.parametrize("name", HERE)
def test_a_tool_takes_what_its_documents_name(name: str) -> None:
    known, tool = TOOLS[name]["input_schema"], CMS_TOOLSET.find_tool(name)
    assert tool is not None
    own = tool.input_schema
    assert not own.keys() & {"anyOf", "oneOf", "allOf", "not"}, "providers refuse these at the top"
    assert own["additionalProperties"] is False
    if name not in REQUIRED_INSTEAD:
        assert own.get("required") == known.get("required")
    for member, schema in known["properties"].items():
        assert _essence(own["properties"][member]) == _essence(schema), member


def _essence(schema: Any) -> Any:
    """Leave out texts, and the default language: it is that of the site."""
    if isinstance(schema, list):
        return [_essence(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    names = schema.keys() - {"description", "maxItems"} - ({"default"} if schema.get("default") == "en" else set())
    return {name: _essence(schema[name]) for name in sorted(names)}
