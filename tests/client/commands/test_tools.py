"""`fermata tools`: output, requests, exit codes."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from fermata_client.cli import main
from tests.scripted_tool_server import ScriptedToolServer, run_scripted_tool_server

TOOL = {
    "manifest": {"name": "pim.get\x1b[31mProduct", "enabled": True, "capability": "read"},
    "source": "remote",
    "endpoint": "https://vendor.example/t",
    "scopes": [],
    "updatedAt": "2026-11-28T09:30:00.000Z",
}
REGISTRATION = {"manifest": {"name": "pim.getProduct"}, "endpoint": "https://vendor.example/t"}


@pytest.fixture
def service() -> Any:
    with run_scripted_tool_server() as server:
        yield server


def run(service: ScriptedToolServer, *arguments: str) -> Result:
    url = f"http://127.0.0.1:{service.server_port}"
    return CliRunner().invoke(main, ["tools", *arguments, "--url", url, "--token", "t"])


def test_tools_are_listed_without_control_characters(service: ScriptedToolServer) -> None:
    service.script_answer({"tools": [TOOL]})
    result = run(service, "list")
    assert result.exit_code == 0, result.output
    assert "pim.get" in result.output
    assert "\x1b" not in result.output
    assert service.calls[0].path == "/tools"


def test_each_tool_of_a_file_is_registered_and_its_secret_printed_alone(
    service: ScriptedToolServer, tmp_path: Path
) -> None:
    file = tmp_path / "tools.json"
    file.write_text(json.dumps({"tools": [REGISTRATION, REGISTRATION]}))
    service.script_answer({"error": "The manifest is invalid: name is required."}, 400)
    service.script_answer({"tool": TOOL, "signingSecret": "whsec_x"}, 201)
    result = run(service, "register", str(file), "--replace")
    assert result.exit_code == 1
    assert result.stdout == "whsec_x\n"
    assert "name is required" in result.stderr
    assert [call.body for call in service.calls] == [REGISTRATION | {"replace": True}] * 2


@pytest.mark.parametrize(
    ("arguments", "path", "body"),
    [
        (("disable", "a/b"), "/tools/a%2Fb", {"enabled": False}),
        (("enable", "x"), "/tools/x", {"enabled": True}),
        (("rotate-secret", "x"), "/tools/x", {"rotateSigningSecret": True}),
    ],
)
def test_a_tool_is_changed(service: ScriptedToolServer, arguments: tuple[str, ...], path: str, body: Any) -> None:
    service.script_answer({"tool": TOOL, "signingSecret": "whsec_new"})
    result = run(service, *arguments)
    assert result.exit_code == 0, result.output
    assert (service.calls[0].path, service.calls[0].body) == (path, body)


def test_a_tool_is_removed(service: ScriptedToolServer) -> None:
    service.script_answer({"ok": True})
    assert run(service, "remove", "x", "--yes").exit_code == 0
    assert service.calls[0].path == "/tools/x"


@pytest.mark.parametrize("text", ["", "[1]", "5"])
def test_a_file_without_registrations_is_refused(service: ScriptedToolServer, tmp_path: Path, text: str) -> None:
    file = tmp_path / "tools.json"
    file.write_text(text)
    assert run(service, "register", str(file)).exit_code == 1
    assert service.calls == []


def test_a_built_in_tool_is_turned_on_with_a_key_from_the_environment(
    service: ScriptedToolServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DRIVE_KEY", "k-1")
    service.script_answer({"tool": TOOL})
    result = run(service, "turn-on", "gdrive.browse", "--key-env", "DRIVE_KEY", "--option", "folderId=f=1")
    assert result.exit_code == 0, result.output
    assert service.calls[0].body == {"apiKey": "k-1", "options": {"folderId": "f=1"}}
    assert run(service, "turn-on", "http_get", "--no-key", "--option", "hosts").exit_code == 2
    assert "Without a key: --no-key." in run(service, "turn-on", "http_get").output
