"""The examples of docs/mcp.md work as they are written."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from fermata.agents.definitions.compile_definitions import compile_definitions
from fermata.agents.definitions.definition_problems import SourceDocument
from tests.tenant_tokens import TokenSigner, make_tenant
from tests.unit.instatic.open_editor import OpenEditor
from tests.unit.turns.stage import Stage

PAGE = (Path(__file__).parents[3] / "docs" / "mcp.md").read_text()


def find_example(language: str) -> str:
    [example] = re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    return str(example)


@pytest.fixture
def signer(stage: Stage) -> TokenSigner:
    return make_tenant(stage.resources, dialect="instatic", tool_names="prefixed")


@pytest.fixture
def variables(service: str, signer: TokenSigner) -> dict[str, str]:
    capabilities = ["ai.chat", "ai.tools.write", "site.read", "ai.providers.manage"]
    token = signer.bearer_headers(capabilities=capabilities)["authorization"].partition(" ")[2]
    return {**os.environ, "FERMATA_URL": service, "FERMATA_TOKEN": token}


def create_connector(variables: dict[str, str]) -> str:
    if shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    ran = subprocess.run(["bash", "-c", find_example("sh")], env=variables, capture_output=True, text=True, check=True)
    return str(json.loads(ran.stdout)["token"])


def test_the_command_creates_a_connector_with_which_the_configuration_and_the_program_work(
    variables: dict[str, str], signer: TokenSigner
) -> None:
    variables["FERMATA_CONNECTOR"] = create_connector(variables)
    written = re.sub(r"\$(\w+)", lambda match: variables[match[1]], find_example("json"))
    configured = json.loads(written)["mcpServers"]["site"]
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    assert httpx.post(configured["url"], headers=configured["headers"], json=ping).json()["result"] == {}
    headers = {"authorization": f"Bearer {variables['FERMATA_TOKEN']}"}
    with OpenEditor(variables["FERMATA_URL"], headers, lambda _event: {"ok": True, "data": {"html": "<main>"}}):
        program = [sys.executable, "-c", find_example("python")]
        ran = subprocess.run(program, env=variables, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    count, read = ran.stdout.splitlines()
    assert count.endswith("tools")
    assert json.loads(read) == {"html": "<main>"}


def test_the_definition_compiles() -> None:
    yaml = pytest.importorskip("yaml")
    compiled = compile_definitions([SourceDocument("agents.yaml", yaml.safe_load(find_example("yaml")))])
    assert not compiled.errors
    [agent] = compiled.definitions.values()
    assert [(source.transport, source.confirm) for source in agent.mcp] == [("http", False), ("sse", True)]
