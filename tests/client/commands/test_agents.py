"""`fermata agents` and `fermata secrets`: output, requests, exit codes."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from fermata_client.cli import main
from tests.scripted_tool_server import ScriptedToolServer, run_scripted_tool_server

GOOD = """agents:
  - id: helper
    type: ClaudeAgent
    connectionId: claude
    properties:
      model: claude-sonnet-5
connections:
  - id: claude
    type: Anthropic
    properties:
      apiKey: {_secret: KEY}
"""
BAD = GOOD.replace("claude-sonnet-5", "{_if: x}").replace("ClaudeAgent", "ClaudeAgent\n    tools: [x]")
CHANGED: dict[str, Any] = {
    "added": ["helper"],
    "changed": [],
    "removed": [],
    "unchanged": [],
    "version": 1,
    "warnings": [],
    "differences": {},
}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "agents.yaml").write_text(GOOD)
    return tmp_path / "agents.yaml"


@pytest.fixture
def service() -> Any:
    with run_scripted_tool_server() as server:
        yield server


def run(*arguments: str, service: ScriptedToolServer | None = None, given: str | None = None) -> Result:
    address = ["--url", f"http://127.0.0.1:{service.server_port}", "--token", "t"] if service else []
    return CliRunner().invoke(main, [*arguments, *address], input=given)


def test_check_finds_every_mistake_without_a_service(place: Path) -> None:
    assert run("agents", "check", str(place)).exit_code == 0
    place.write_text(BAD)
    result = run("agents", "check", str(place))
    assert result.exit_code == 1
    lines = result.output.splitlines()
    assert lines[0].startswith("agents.yaml:4: error: agents[0].tools[0]: The agent 'helper' names the endpoint 'x'")
    assert lines[1].startswith("agents.yaml:7: error: agents[0].properties.model: There is no operator _if.")
    assert lines[2] == "fermata: 2 mistakes."


def test_check_prints_problems_as_json(place: Path) -> None:
    place.write_text(BAD + "x: [")
    result = run("agents", "check", str(place), "--json")
    body = json.loads(result.stdout)
    assert (result.exit_code, body["status"]) == (1, "failed")
    assert body["problems"][0]["line"] > 0
    place.write_text(GOOD)
    assert json.loads(run("agents", "check", str(place), "--json").stdout) == {"status": "ok", "problems": []}


def test_check_warns_of_what_a_deployed_service_cannot_call(place: Path) -> None:
    endpoint = "endpoints: [{id: e, url: 'https://desk.internal/x'}]\n"
    hosts = (
        "https://10.0.0.1/mcp",
        "http://tools.example/mcp",
        "https://localhost/mcp",
        "https://[::1]/",
        "https://a.b/",
    )
    sources = ", ".join(f"{{url: '{url}'}}" for url in hosts)
    mcp = f"    mcp: [{{transport: stdio, command: x}}, {sources}]\n"
    place.write_text(GOOD.replace("    properties:\n      model", mcp + "    properties:\n      model") + endpoint)
    result = run("agents", "check", str(place))
    warned = [line.split(": ")[2] for line in result.output.splitlines() if ": warning: " in line]
    assert result.exit_code == 0
    assert warned == ["agents[0].mcp[0]", *(f"agents[0].mcp[{index}].url" for index in range(1, 5)), "endpoints[0].url"]


def test_push_sends_the_files_and_says_what_has_changed(place: Path, service: ScriptedToolServer) -> None:
    service.script_answer(CHANGED)
    service.script_answer(CHANGED | {"added": [], "unchanged": ["helper"]})
    result = run("agents", "push", str(place), service=service)
    assert (result.exit_code, result.stdout) == (0, "helper added\n")
    assert service.calls[0].body["files"][0]["content"]["agents"][0]["id"] == "helper"
    assert run("agents", "push", str(place), "--version", "1", service=service).exit_code == 3
    assert service.calls[1].body["version"] == 1


def test_push_prints_the_mistakes_that_the_service_finds(place: Path, service: ScriptedToolServer) -> None:
    problem = {"severity": "error", "file": "a.yaml", "line": 4, "path": "agents[0]", "message": "No\x1b[31m."}
    answer = {"error": "Mistakes.", "code": "invalid_agents", "problems": [problem]}
    service.script_answer(answer, 400)
    service.script_answer(answer, 400)
    result = run("agents", "push", str(place), service=service)
    assert result.exit_code == 1
    assert result.stderr.splitlines()[0] == "a.yaml:4: error: agents[0]: No[31m."
    shown = run("agents", "push", str(place), "--json", service=service)
    assert json.loads(shown.stdout)["problems"] == [problem]


def test_diff_changes_nothing_and_shows_members(place: Path, service: ScriptedToolServer) -> None:
    difference = {"path": "properties.model", "before": "old", "after": "new"}
    service.script_answer(CHANGED | {"added": [], "changed": ["helper"], "differences": {"helper": [difference]}})
    result = run("agents", "diff", str(place), service=service)
    assert (result.exit_code, service.calls[0].body["dryRun"]) == (0, True)
    assert "helper: properties.model: 'old' → 'new'" in result.stdout


def test_agents_are_listed_shown_and_removed(service: ScriptedToolServer) -> None:
    summary = {"id": "helper", "version": "0" * 16, "title": "H\x1b[31m", "description": "", "public": False}
    summary |= {"roles": ["editor"], "updatedAt": "2026-11-28T09:30:00.000Z"}
    service.script_answer({"agents": [summary], "version": 1, "updatedBy": "ada"})
    service.script_answer({"agent": summary, "definition": {"id": "helper"}})
    service.script_answer({"ok": True})
    listed = run("agents", service=service)
    assert "editor" in listed.output
    assert "\x1b" not in listed.output
    assert json.loads(run("agents", "show", "helper", service=service).stdout)["definition"] == {"id": "helper"}
    assert run("agents", "remove", "helper", "--yes", service=service).exit_code == 0
    assert [call.path for call in service.calls][1:] == ["/admin/api/ai/agent-definitions/helper"] * 2


def test_the_schema_is_printed() -> None:
    assert json.loads(run("agents", "schema").stdout)["title"] == "Agents of a Fermata workspace"


def test_secrets_are_read_from_standard_input(service: ScriptedToolServer) -> None:
    service.script_answer({"secret": {"name": "KEY", "updatedAt": "2026-11-28T09:30:00.000Z", "updatedBy": "ada"}})
    result = run("secrets", "set", "KEY", service=service, given="sk-1\n")
    assert result.exit_code == 0, result.output
    assert service.calls[0].body == {"value": "sk-1"}
    assert "sk-1" not in result.output


def test_a_push_of_a_place_without_agents_removes_nothing(tmp_path: Path, service: ScriptedToolServer) -> None:
    (tmp_path / "compose.yaml").write_text("services: {}")
    result = run("agents", "push", str(tmp_path), service=service)
    assert (result.exit_code, service.calls) == (1, [])
    assert "defines no agents" in result.stderr


def write_folder(place: Path, *sizes: int) -> Path:
    place.write_text(GOOD.replace("claude-sonnet-5", "claude-sonnet-5\n      fileSystem: {basePath: docs}"))
    (place.parent / "docs").mkdir()
    for number, size in enumerate(sizes):
        (place.parent / "docs" / f"{number}.txt").write_bytes(b"x" * size)
    return place.parent


def test_a_folder_that_is_too_large_for_a_request_is_uploaded_in_parts(
    place: Path, service: ScriptedToolServer
) -> None:
    folder = write_folder(place, 7_000_000, 7_000_000, 10)
    url = f"http://127.0.0.1:{service.server_port}/put"
    for ref in ("ref-1", "ref-2"):
        service.script_answer({"ref": ref, "url": url, "headers": {}})
        service.script_answer({})
    service.script_answer(CHANGED)
    result = run("agents", "push", str(folder), service=service)
    assert result.exit_code == 0, result.output
    announced, stored, _, second, pushed = service.calls
    assert announced.body["kind"] == "agentFiles"
    assert announced.body["bytes"] == len(stored.raw) <= 16 * 1024 * 1024
    parts = [[file["path"] for file in call.body["files"]] for call in (stored, second)]
    assert parts == [["0.txt"], ["1.txt", "2.txt"]]
    assert pushed.body["folderUploads"] == {"docs": ["ref-1", "ref-2"]}
    assert "folders" not in pushed.body


def test_files_that_no_agent_may_have_are_named_with_their_size_before_anything_is_sent(
    place: Path, service: ScriptedToolServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fermata_client.agent_files.agent_files.MAX_FOLDER_BYTES", 10_000_005)
    folder = write_folder(place, 10_000_001, 5)
    result = run("agents", "push", str(folder), service=service)
    assert (result.exit_code, service.calls) == (1, [])
    assert "docs/0.txt has 10,000,001 bytes; a file of an agent has at most 10,000,000." in result.stderr
    assert "The largest file is 0.txt with 10,000,001." in result.stderr
