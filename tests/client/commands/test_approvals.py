"""`fermata approvals`: output, requests, exit codes; and `fermata audit --verify`."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from fermata.aws.resources import Resources
from fermata.turns.approvals.decision_trail import TrailHead, build_trail_writes, trail_partition
from fermata_client.cli import main
from tests.scripted_tool_server import ScriptedToolServer, run_scripted_tool_server
from tests.unit.resource_fixtures import clock, resources, shared_resources

__all__ = ["clock", "resources", "shared_resources"]

APPROVAL = {
    "approvalId": "t.1.0.n",
    "state": "waiting",
    "userId": "ada",
    "toolName": "publish\x1b[31mSite",
    "description": "Publishes the site. This tool always asks.",
    "risk": "high",
    "reasons": ["tool"],
    "input": {"slug": "home"},
    "inputHash": "a" * 64,
    "requestedAt": "2026-11-28T09:30:00.000Z",
    "deadline": "2026-12-05T09:30:00.000Z",
}


@pytest.fixture
def service() -> Any:
    with run_scripted_tool_server() as server:
        yield server


def run(service: ScriptedToolServer, *arguments: str) -> Result:
    return run_command(service, "approvals", *arguments)


def run_command(service: ScriptedToolServer, *arguments: str) -> Result:
    url = f"http://127.0.0.1:{service.server_port}"
    return CliRunner().invoke(main, [*arguments, "--url", url, "--token", "t"])


def test_all_pages_of_waiting_calls_are_listed_without_control_characters(service: ScriptedToolServer) -> None:
    service.script_answer({"approvals": [APPROVAL], "nextCursor": "next"})
    service.script_answer({"approvals": [APPROVAL | {"approvalId": "u.1.0.n"}]})
    result = run(service)
    assert result.exit_code == 0, result.output
    assert "t.1.0.n" in result.output
    assert "u.1.0.n" in result.output
    assert "\x1b" not in result.output
    assert "cursor=next" in service.calls[1].path


def test_a_call_is_shown_with_its_whole_input(service: ScriptedToolServer) -> None:
    service.script_answer({"approval": APPROVAL})
    result = run(service, "show", "t.1.0.n")
    assert '"slug": "home"' in result.output
    assert "\x1b" not in result.output


def test_an_input_is_shown_in_its_language_and_hides_no_character(service: ScriptedToolServer) -> None:
    service.script_answer({"approval": APPROVAL | {"input": {"slug": "über\u202euns"}}})
    assert '"slug": "über\\u202euns"' in run(service, "show", "t.1.0.n").output


def test_a_call_is_shown_with_who_asked_and_until_when(service: ScriptedToolServer) -> None:
    service.script_answer({"approval": APPROVAL})
    shown = run(service, "show", "t.1.0.n").output
    assert shown.rstrip().endswith("ada has asked for it at 2026-11-28 09:30. It waits until 2026-12-05 09:30.")


@pytest.mark.parametrize(("decided_hash", "note"), [("a" * 64, ""), ("b" * 64, ", with another input")])
def test_a_decided_call_is_shown_with_its_decision(service: ScriptedToolServer, decided_hash: str, note: str) -> None:
    decided = {"state": "approved", "decidedAt": "2026-11-29T10:00:00.000Z", "decidedBy": "grace", "reason": "Checked."}
    service.script_answer({"approval": APPROVAL | decided | {"decidedInputHash": decided_hash}})
    shown = run(service, "show", "t.1.0.n").output
    assert shown.rstrip().endswith(f"It was approved by grace at 2026-11-29 10:00{note}. The reason: Checked.")


def test_an_approval_names_the_input_that_was_seen(service: ScriptedToolServer) -> None:
    service.script_answer({"approval": APPROVAL})
    service.script_answer({"approval": APPROVAL | {"state": "approved"}})
    result = run(service, "approve", "t.1.0.n", "--input", '{"slug": "news"}')
    assert result.exit_code == 0, result.output
    assert service.calls[1].body == {
        "approved": True,
        "reason": "",
        "input": {"slug": "news"},
        "inputHash": "a" * 64,
    }


def test_what_was_decided_last_is_listed(service: ScriptedToolServer) -> None:
    decision = {"at": "2026-11-28T09:30:00.000Z", "outcome": "denied", "tool": "publish", "reason": "No\x1b[31m."}
    service.script_answer({"decisions": [decision]})
    result = run(service, "history", "--limit", "5")
    assert result.exit_code == 0, result.output
    assert "denied" in result.output
    assert "\x1b" not in result.output
    assert "limit=5" in service.calls[0].path


def test_the_policy_that_was_shown_can_be_set_again(service: ScriptedToolServer, tmp_path: Path) -> None:
    warnings = ["Rule 1: no tool is called '\x1bx' now."]
    policy = {"rules": [{"effect": "ask"}], "newTools": False, "updatedAt": "2026-11-28", "warnings": warnings}
    service.script_answer(policy)
    shown = run_command(service, "policy")
    file = tmp_path / "policy.json"
    file.write_text(shown.output)
    service.script_answer(policy)
    result = run_command(service, "policy", "set", str(file))
    assert "Warning: Rule 1: no tool is called 'x' now." in result.stderr
    assert "1 rule." in result.output
    assert service.calls[1].body == {"rules": [{"effect": "ask"}], "newTools": False}
    for text in ("[]", "{"):
        file.write_text(text)
        assert run_command(service, "policy", "set", str(file)).exit_code == 2


def test_queued_prompts_are_listed_edited_and_dropped(service: ScriptedToolServer) -> None:
    prompt = {"promptId": "p", "state": "waiting", "text": "Bake", "version": 1}
    prompt |= {"createdAt": "2026-11-28T09:30:00.000Z"}
    service.script_answer({"prompts": [prompt]})
    service.script_answer({"prompt": prompt | {"version": 2}})
    service.script_answer({"prompt": prompt | {"state": "dropped"}})
    assert "Bake" in run_command(service, "queue", "list", "c").output
    assert "version 2" in run_command(service, "queue", "edit", "c", "p", "Bake two", "--version", "1").output
    assert service.calls[1].body == {"prompt": "Bake two", "version": 1}
    assert "dropped" in run_command(service, "queue", "drop", "c", "p").output
    assert service.calls[2].path.endswith("/conversations/c/queue/p")


def test_a_denial_is_sent_with_its_reason(service: ScriptedToolServer) -> None:
    service.script_answer({"approval": APPROVAL | {"state": "denied"}})
    result = run(service, "deny", "t.1.0.n", "--reason", "Not today.")
    assert "denied" in result.output
    assert service.calls[0].body == {"approved": False, "reason": "Not today.", "inputHash": ""}


def test_a_decision_that_came_too_late_fails_with_the_services_words(service: ScriptedToolServer) -> None:
    service.script_answer({"error": "This call has already been approved."}, 409)
    result = run(service, "deny", "t.1.0.n")
    assert result.exit_code != 0
    assert "already been approved" in result.output


@pytest.mark.parametrize("text", ["nothing", "[1]"])
def test_an_input_that_is_no_object_is_wrong_usage(service: ScriptedToolServer, text: str) -> None:
    service.script_answer({"approval": APPROVAL})
    assert run(service, "approve", "t.1.0.n", "--input", text).exit_code == 2


def write_trail(resources: Resources, count: int) -> None:
    entries = tuple(({"turn": "t", "approval": f"t.{number}.0.n"}, {"decidedBy": "ada"}) for number in range(count))
    resources.tables.write_items(*build_trail_writes(resources, "bakery", TrailHead(), entries))


def verify(resources: Resources, monkeypatch: pytest.MonkeyPatch, *options: str) -> Result:
    monkeypatch.setattr("fermata_client.commands.workspace.audit.open_stack_resources", lambda _location: resources)
    arguments = ["audit", "--verify", "--tenant", "bakery", "--stack", "s", "--region", "eu-central-1", *options]
    return CliRunner().invoke(main, arguments)


def test_a_whole_trail_is_confirmed_with_its_newest_hash(resources: Resources, monkeypatch: pytest.MonkeyPatch) -> None:
    write_trail(resources, 3)
    result = verify(resources, monkeypatch)
    assert result.exit_code == 0, result.output
    assert "holds: 3 decisions" in result.output
    noted = result.output.split()[-1].rstrip(".")
    assert verify(resources, monkeypatch, "--hash", noted).exit_code == 0
    assert verify(resources, monkeypatch, "--hash", "f" * 64).exit_code == 1


def test_the_first_broken_link_is_named(resources: Resources, monkeypatch: pytest.MonkeyPatch) -> None:
    write_trail(resources, 3)
    resources.tables.batch_delete("bridges", [(trail_partition("bakery"), "d#0000000002")])
    result = verify(resources, monkeypatch)
    assert result.exit_code == 1
    assert "broken at entry 2" in result.output
    assert "1 entry before it holds" in json.dumps(result.output)
