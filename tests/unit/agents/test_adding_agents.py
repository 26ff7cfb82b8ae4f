"""A new agent is a folder and a line: it is then served, and runs turns."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
PACKAGE = ROOT / "layers" / "fermata" / "fermata"
ENTRY = """    "kitchen": "tests.unit.agents.example_agent.agent:KITCHEN_AGENT",
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
    from functions.tool_result import app as tool_result
    headers = make_tenant(resources).bearer_headers(capabilities=("ai.chat", "ai.tools.write", "recipes.read"))
    def send(method, path, body=None, app=app):
        event = make_proxy_event(method, "/admin/api/ai/" + path, headers)
        response = app.handler(event | {"body": json.dumps(body) if body else None}, None)
        return response["statusCode"], json.loads(response["body"])
    document = app.handler(make_proxy_event("GET", "/admin/api/ai/openapi.json", {}), None)
    scopes = send("GET", "scopes")
    agents = send("GET", "agents", app=tool_result)
    agent = send("GET", "agents/kitchen", app=tool_result)
    tools = send("GET", "tools/kitchen")
    created = send("POST", "conversations", {"scope": "kitchen"})
    print(json.dumps([json.loads(document["body"]), scopes, agents, agent, tools, created]))
"""


def insert_text(file: Path, before: str, text: str) -> None:
    source = file.read_text()
    assert source.count(before) == 1
    file.write_text(source.replace(before, text + before))


def test_an_agent_that_is_added_as_described_has_tools_and_conversations(tmp_path: Path) -> None:
    copy = tmp_path / "fermata"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    insert_text(copy / "domain" / "agent_ids.py", '    "content": "fermata', ENTRY)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, (tmp_path, ROOT)))}
    command = [sys.executable, "-c", SEND_REQUESTS]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    responses = json.loads(done.stdout.splitlines()[-1])
    document, (_, scopes), (_, agents), (_, agent), (listed, tools), (created, conversation) = responses
    assert {"name": "kitchen"} in scopes["scopes"]
    assert "kitchen" in document["components"]["schemas"]["NewConversation"]["properties"]["scope"]["anyOf"][0]["enum"]
    assert [listed_agent["id"] for listed_agent in agents["agents"]][:3] == ["site", "kitchen", "content"]
    assert [tool["name"] for tool in agent["agent"]["tools"]] == ["scale_recipe", "highlight_step"]
    assert (listed, [tool["name"] for tool in tools["tools"]]) == (200, ["scale_recipe", "highlight_step"])
    assert (created, conversation["conversation"]["scope"]) == (201, "kitchen")
