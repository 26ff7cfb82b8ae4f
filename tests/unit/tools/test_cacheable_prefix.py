"""The stable part of every prompt is the same bytes for everybody, so that providers can keep it."""

import json
import re
import subprocess
import sys
from hashlib import sha256
from itertools import product

import pytest

from fermata.domain.scopes import SCOPES
from fermata.drivers.providers.openai import make_prompt_cache_key
from fermata.tools.registry import SCOPE_REGISTRY, build_situation, build_system_prompt, get_toolset
from fermata.tools.tool_names import ToolNaming, get_prefixed_name, get_wire_name
from tests.unit.tools.builders import ALL_CAPABILITIES, make_site_snapshot
from tests.unit.tools.content_samples import WORKSPACE

EACH = list(product(SCOPES, ToolNaming))
PLACEHOLDER = re.compile(r"\{(?!currentEntry\.|\{?post\.)")
NAMED = {"site": 35, "content": 15, "plugin": 6}

PROGRAM = f"""
import json, sys
from tests.unit.tools.test_cacheable_prefix import shown
print(json.dumps([shown(scope, names) for scope in {SCOPES} for names in ("seed", "prefixed")]))
"""


def shown(scope: str, names: str, tenant: str = "") -> str:
    """What a request begins with: the stable part and the tools, as a digest of their bytes."""
    toolset = get_toolset(scope)
    everything = frozenset().union(*(tool.permissions for tool in toolset.tools)) | ALL_CAPABILITIES
    tools = [spec.to_wire() for spec in toolset.build_tool_specs(everything, scope, ToolNaming(names), tenant=tenant)]
    return sha256((build_system_prompt(scope, ToolNaming(names)) + json.dumps(tools)).encode()).hexdigest()


@pytest.mark.parametrize("seed", ["0", "1", "4242"])
def test_another_process_begins_with_the_same_bytes_however_it_hashes(seed: str) -> None:
    environment = {"PYTHONPATH": ":".join(filter(None, sys.path)), "PYTHONHASHSEED": seed}
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, env=environment, check=True)
    assert json.loads(done.stdout) == [shown(scope, names) for scope, names in EACH]


@pytest.mark.parametrize(("scope", "names"), EACH)
def test_neither_the_tenant_nor_the_turn_changes_a_byte(scope: str, names: ToolNaming) -> None:
    before = shown(scope, names, "tenant-1")
    for posted in (make_site_snapshot(), WORKSPACE, {"page": 3}, None):
        build_situation(scope, posted, names)
        assert shown(scope, names, "tenant-2") == before


@pytest.mark.parametrize("names", list(ToolNaming))
@pytest.mark.parametrize("scope", SCOPE_REGISTRY)
def test_the_stable_part_names_tools_as_the_model_knows_them_and_no_others(scope: str, names: ToolNaming) -> None:
    prompt, tools = build_system_prompt(scope, names), get_toolset(scope).tools
    for tool in tools:
        others = {tool.name, get_prefixed_name(tool)} - {get_wire_name(tool, names)}
        assert not any(re.search(rf"\b{other}\b", prompt) for other in others), tool.name
    assert not PLACEHOLDER.search(prompt)
    assert sum(bool(re.search(rf"\b{get_wire_name(tool, names)}\b", prompt)) for tool in tools) == NAMED[scope]


@pytest.mark.parametrize(
    ("scope", "key"), [("site", "instatic:site:nq4m34"), ("content", "instatic:content:of0mw0")], ids=["C152", "C153"]
)
def test_the_real_toolset_has_the_cache_key_the_editor_knows(scope: str, key: str) -> None:
    toolset = get_toolset(scope)
    everything = frozenset().union(*(tool.permissions for tool in toolset.tools)) | ALL_CAPABILITIES
    offered = toolset.build_tool_specs(everything, scope, ToolNaming.PREFIXED)
    assert make_prompt_cache_key(scope, [spec.name for spec in offered]) == key
