"""The stable part of every prompt is the same bytes for everybody, so that providers can keep it."""

import json
import re
import subprocess
import sys
from hashlib import sha256
from itertools import product

import pytest

from fermata.drivers.openai import cache_key
from fermata.tools.catalogue import AREAS, situation, system_prompt, toolset_for
from fermata.tools.names import Names, prefixed_name, wire_name
from fermata.words.scopes import SCOPES
from tests.unit.tools.bakery import WORKSPACE
from tests.unit.tools.toys import EVERYTHING, snapshot

EACH = list(product(SCOPES, Names))
PLACEHOLDER = re.compile(r"\{(?!currentEntry\.|\{?post\.)")
NAMED = {"site": 35, "content": 15, "plugin": 6}

PROGRAM = f"""
import json, sys
from tests.unit.tools.test_prefix import shown
print(json.dumps([shown(scope, names) for scope in {SCOPES} for names in ("seed", "prefixed")]))
"""


def shown(scope: str, names: str, tenant: str = "") -> str:
    """What a request begins with: the stable part and the tools, as a digest of their bytes."""
    toolset = toolset_for(scope)
    everything = frozenset().union(*(tool.permissions for tool in toolset.tools)) | EVERYTHING
    tools = [spec.wire() for spec in toolset.offered(everything, scope, Names(names), tenant=tenant)]
    return sha256((system_prompt(scope, Names(names)) + json.dumps(tools)).encode()).hexdigest()


@pytest.mark.parametrize("seed", ["0", "1", "4242"])
def test_another_process_begins_with_the_same_bytes_however_it_hashes(seed: str) -> None:
    environment = {"PYTHONPATH": ":".join(filter(None, sys.path)), "PYTHONHASHSEED": seed}
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, env=environment, check=True)
    assert json.loads(done.stdout) == [shown(scope, names) for scope, names in EACH]


@pytest.mark.parametrize(("scope", "names"), EACH)
def test_neither_the_tenant_nor_the_turn_changes_a_byte(scope: str, names: Names) -> None:
    before = shown(scope, names, "tenant-1")
    for posted in (snapshot(), WORKSPACE, {"page": 3}, None):
        situation(scope, posted, names)
        assert shown(scope, names, "tenant-2") == before


@pytest.mark.parametrize("names", list(Names))
@pytest.mark.parametrize("scope", AREAS)
def test_the_stable_part_names_tools_as_the_model_knows_them_and_no_others(scope: str, names: Names) -> None:
    prompt, tools = system_prompt(scope, names), toolset_for(scope).tools
    for tool in tools:
        others = {tool.name, prefixed_name(tool)} - {wire_name(tool, names)}
        assert not any(re.search(rf"\b{other}\b", prompt) for other in others), tool.name
    assert not PLACEHOLDER.search(prompt)
    assert sum(bool(re.search(rf"\b{wire_name(tool, names)}\b", prompt)) for tool in tools) == NAMED[scope]


@pytest.mark.parametrize(
    ("scope", "key"), [("site", "instatic:site:nq4m34"), ("content", "instatic:content:of0mw0")], ids=["C152", "C153"]
)
def test_the_real_toolset_has_the_cache_key_the_editor_knows(scope: str, key: str) -> None:
    toolset = toolset_for(scope)
    everything = frozenset().union(*(tool.permissions for tool in toolset.tools)) | EVERYTHING
    offered = toolset.offered(everything, scope, Names.PREFIXED)
    assert cache_key(scope, [spec.name for spec in offered]) == key
