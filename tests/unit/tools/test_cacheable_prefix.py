"""Every prompt starts with the same bytes for every caller, so that providers can cache them (decision 0100)."""

import json
import re
import subprocess
import sys
from hashlib import sha256
from itertools import product

import pytest

from fermata.agents.registry import get_toolset, list_scopes_with_tools, open_agent
from fermata.domain.agent_ids import SCOPES
from fermata.drivers.providers.openai import make_prompt_cache_key
from fermata.tools.tool_names import ToolNaming, get_prefixed_name, get_wire_name
from tests.quick_suite_samples import sample_for_quick_suite
from tests.unit.tools.builders import ALL_CAPABILITIES, make_site_snapshot
from tests.unit.tools.content_samples import WORKSPACE

SCOPES_AND_NAMINGS = list(product(SCOPES, ToolNaming))
PLACEHOLDER = re.compile(r"\{(?!currentEntry\.|\{?post\.)")
NOT_IN_PROMPT = {"plugin": {"plugin_rename_file", "plugin_delete_file", "plugin_open_file", "plugin_list_plugins"}}
"""Tools that a prompt does not explain, by scope."""

PROGRAM = f"""
import json, sys
from tests.unit.tools.test_cacheable_prefix import digest_prefix
print(json.dumps([digest_prefix(scope, naming) for scope in {tuple(SCOPES)} for naming in ("seed", "prefixed")]))
"""


def digest_prefix(scope: str, naming: str, tenant: str = "") -> str:
    """Digest the bytes that a request starts with: the system prompt and the tools."""
    toolset = get_toolset(scope)
    capabilities = frozenset().union(*(tool.permissions for tool in toolset.tools)) | ALL_CAPABILITIES
    tools = [
        spec.to_wire() for spec in toolset.build_tool_specs(capabilities, scope, ToolNaming(naming), tenant=tenant)
    ]
    return sha256((open_agent(scope).build_system_prompt(ToolNaming(naming)) + json.dumps(tools)).encode()).hexdigest()


@pytest.mark.parametrize("seed", sample_for_quick_suite(["0", "1", "4242"], every=3))
def test_every_process_builds_the_same_bytes_with_any_hash_seed(seed: str) -> None:
    environment = {"PYTHONPATH": ":".join(filter(None, sys.path)), "PYTHONHASHSEED": seed}
    process = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, env=environment, check=True
    )
    assert json.loads(process.stdout) == [digest_prefix(scope, naming) for scope, naming in SCOPES_AND_NAMINGS]


@pytest.mark.parametrize(("scope", "naming"), SCOPES_AND_NAMINGS)
def test_neither_the_tenant_nor_the_turn_changes_a_byte(scope: str, naming: ToolNaming) -> None:
    before = digest_prefix(scope, naming, "tenant-1")
    for snapshot in (make_site_snapshot(), WORKSPACE, {"page": 3}, None):
        open_agent(scope).build_situation(snapshot, naming)
        assert digest_prefix(scope, naming, "tenant-2") == before


@pytest.mark.parametrize("naming", list(ToolNaming))
@pytest.mark.parametrize("scope", sorted({*list_scopes_with_tools()} - {"studio"}))  # its prompt is written per project
def test_the_prompt_uses_the_wire_names_of_the_tools_and_no_other_names(scope: str, naming: ToolNaming) -> None:
    prompt, tools = open_agent(scope).build_system_prompt(naming), get_toolset(scope).tools
    for tool in tools:
        others = {tool.name, get_prefixed_name(tool)} - {get_wire_name(tool, naming)}
        assert not any(re.search(rf"\b{other}\b", prompt) for other in others), tool.name
    assert not PLACEHOLDER.search(prompt)
    unexplained = {tool.name for tool in tools if not re.search(rf"\b{get_wire_name(tool, naming)}\b", prompt)}
    assert unexplained == NOT_IN_PROMPT.get(scope, set())


@pytest.mark.parametrize(
    ("scope", "key"), [("site", "instatic:site:nq4m34"), ("content", "instatic:content:of0mw0")], ids=["C152", "C153"]
)
def test_the_toolset_has_the_prompt_cache_key_of_the_editor(scope: str, key: str) -> None:
    toolset = get_toolset(scope)
    capabilities = frozenset().union(*(tool.permissions for tool in toolset.tools)) | ALL_CAPABILITIES
    specs = toolset.build_tool_specs(capabilities, scope, ToolNaming.PREFIXED)
    assert make_prompt_cache_key(scope, [spec.name for spec in specs]) == key
