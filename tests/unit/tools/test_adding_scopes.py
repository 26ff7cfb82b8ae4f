"""A new scope is served once it is added where docs/extending.md says."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from fermata.domain.scopes import SCOPES
from fermata.tools.registry import SCOPE_REGISTRY
from fermata_client.commands import options

ROOT = Path(__file__).parents[3]
PACKAGE = ROOT / "layers" / "fermata" / "fermata"
ENTRY = """    "kitchen": ScopeRegistration(
        toolset="tests.unit.tools.example_scope:KITCHEN_TOOLSET",
        prompt="tests.unit.tools.example_scope:system_prompt",
        situation="tests.unit.tools.example_scope:situation",
    ),
"""
SEND_REQUESTS = """
import json, os
os.environ["AWS_DEFAULT_REGION"] = "eu-central-1"
from moto import mock_aws
with mock_aws():
    from tests.proxy_events import make_proxy_event
    from tests.resources import environment_from_resources, make_resources
    from tests.tenant_tokens import make_tenant
    resources = make_resources()
    os.environ.update(environment_from_resources(resources))
    from functions.api import app
    headers = make_tenant(resources).bearer_headers(capabilities=("ai.chat", "ai.tools.write", "recipes.read"))
    def send(method, path, body=None):
        event = make_proxy_event(method, "/admin/api/ai/" + path, headers)
        response = app.handler(event | {"body": json.dumps(body) if body else None}, None)
        return response["statusCode"], json.loads(response["body"])
    tools = send("GET", "tools/kitchen")
    created = send("POST", "conversations", {"scope": "kitchen"})
    print(json.dumps([tools, created]))
"""


def insert_text(file: Path, before: str, text: str) -> None:
    source = file.read_text()
    assert source.count(before) == 1
    file.write_text(source.replace(before, text + before))


def test_a_scope_that_is_added_as_described_has_tools_and_conversations(tmp_path: Path) -> None:
    copy = tmp_path / "fermata"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    insert_text(copy / "domain" / "scopes.py", "]\nSCOPES", ', "kitchen"')
    insert_text(copy / "tools" / "registry.py", '    "content": ScopeRegistration(', ENTRY)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, (tmp_path, ROOT)))}
    command = [sys.executable, "-c", SEND_REQUESTS]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (listed, tools), (created, conversation) = json.loads(done.stdout.splitlines()[-1])
    assert (listed, [tool["name"] for tool in tools["tools"]]) == (200, ["scale_recipe", "highlight_step"])
    assert (created, conversation["conversation"]["scope"]) == (201, "kitchen")


def test_the_registry_and_the_command_line_have_the_scopes_of_the_service() -> None:
    assert set(options.SCOPES) == set(SCOPES)
    assert set(SCOPE_REGISTRY) <= set(SCOPES)
