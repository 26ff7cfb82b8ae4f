"""`fermata edit`: output, files, exit codes."""

import json
import re
import signal
import subprocess
import sys
import time
from collections import deque
from pathlib import Path

import pytest
from click.testing import CliRunner

from fermata_client.cli import main
from tests.client.commands.run_command import PAGE, editing_turn, run_command
from tests.client.scripted_events import (
    done_event,
    number_events,
    ready_event,
    tool_call_event,
    tool_request_event,
)
from tests.client.scripted_service import ServiceScript
from tests.waiting import BACKSTOP_SECONDS


def test_edit_shows_the_stream_the_tools_the_diff_and_the_summary(file: Path, url: str) -> None:
    result = run_command("edit", str(file), "add", "--url", url, "--token", "good", "--json")
    assert result.exit_code == 0
    assert result.stderr.splitlines() == [
        "I add two paragraphs.",
        "  → insertHtml parentId=n2 html=(2 lines)",
        "  ✓ insertHtml",
        "Done [31mred[0m.",
        "--- page.html (before)",
        "+++ page.html (after)",
        "@@ -2,4 +2,6 @@",
        " <title>T</title>",
        " <main>",
        "   <p>a</p>",
        "+  <p>b</p>",
        "+  <p>c</p>",
        " </main>",
    ]
    summary = json.loads(result.stdout)
    assert summary["changed"] == ["page.html"]
    assert (summary["status"], summary["rounds"], summary["browserTools"], summary["events"]) == ("done", 2, 1, 9)
    assert file.read_text() == PAGE.replace("  <p>a</p>\n", "  <p>a</p>\n  <p>b</p>\n  <p>c</p>\n")


def test_edit_writes_elsewhere_when_asked(file: Path, url: str, tmp_path: Path) -> None:
    out = tmp_path / "build" / "new.html"
    result = run_command("edit", str(file), "add", "--url", url, "--token", "good", "--out", str(out))
    assert result.exit_code == 0
    assert file.read_text() == PAGE
    assert "<p>c</p>" in out.read_text()
    assert re.fullmatch(rf"Undo it with: fermata undo \S+ {re.escape(str(out))} --url {url}\n", result.stderr)


def test_edit_shows_what_changed_beside_the_page_too(
    file: Path, url: str, script: ServiceScript, tmp_path: Path
) -> None:
    (tmp_path / "site.css").write_text(".a {\n  top: 0;\n}\n")
    file.write_text('<head>\n  <link rel="stylesheet" href="site.css">\n  <style>b { c: d }</style>\n</head>\n')
    rules = {"css": ".a { top: 1px }\n.new { top: 0 }"}
    script.events[:] = number_events(
        ready_event(), tool_call_event(1, "applyCss", rules), tool_request_event(1, "applyCss", rules), done_event()
    )
    result = run_command("edit", str(file), "add", "--url", url, "--token", "good", "--css", str(tmp_path / "site.css"))
    assert result.exit_code == 0
    assert result.stdout.splitlines()[1:] == [
        "--- site.css (before)",
        "+++ site.css (after)",
        "@@ -1,3 +1,4 @@",
        " .a {",
        "-  top: 0;",
        "+  top: 1px;",
        " }",
        "+.new { top: 0 }",
    ]
    (answer,) = script.posted_answers
    assert answer["result"]["inverse"][0]["tool"] == "restore"


def test_a_style_sheet_that_the_page_does_not_load_is_one_sentence(file: Path, url: str) -> None:
    result = run_command("edit", str(file), "x", "--url", url, "--token", "good", "--css", "other.css")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == (
        "fermata: page.html does not load other.css from its own folder. Link it there, or leave --css out.\n"
    )


def test_edit_sends_the_snapshot_of_the_page_with_the_prompt_and_with_every_answer(
    file: Path, url: str, script: ServiceScript
) -> None:
    run_command("edit", str(file), "add", "--url", url, "--token", "good", "--model", "m-1")
    bodies = {path: body for method, path, body in script.requests if method == "POST"}
    assert bodies["/conversations"] == {"scope": "site", "modelId": "m-1"}
    assert bodies["/chat/site"]["snapshot"]["page"]["title"] == "T"
    assert bodies["/tool-result"]["snapshot"]["page"]["id"] == "page"


def test_colours_are_there_when_forced(file: Path, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    result = CliRunner().invoke(main, ["edit", str(file), "add", "--url", url, "--token", "good"], color=True)
    assert "\x1b[32m+  <p>b</p>\x1b[0m" in result.stdout


def test_a_turn_that_ended_with_an_error_shows_what_was_done_and_fails(
    file: Path, url: str, script: ServiceScript
) -> None:
    script.events[:] = editing_turn({"type": "error", "message": "The provider is overloaded."})
    result = run_command("edit", str(file), "x", "--url", url, "--token", "good", "--json")
    assert result.exit_code == 1
    assert "+  <p>b</p>" in result.stderr
    assert json.loads(result.stdout)["error"] == "The provider is overloaded."
    assert result.stderr.endswith("\nfermata: The turn ended with an error: The provider is overloaded.\n")


def test_a_busy_conversation_is_one_sentence(file: Path, url: str, script: ServiceScript) -> None:
    script.start_faults = deque([409])
    result = run_command("edit", str(file), "x", "--url", url, "--token", "good")
    assert (result.exit_code, result.stderr) == (1, "fermata: The service refused the request with 409: fault 409\n")


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("gone.html", None, "There is no file"),
        ("notes.txt", b"words", "not an HTML page"),
        ("latin.html", b"\xe9", "not UTF-8"),
        ("big.html", b"x" * 2_000_001, "too large"),
    ],
)
def test_a_file_that_cannot_be_edited_is_one_sentence(
    tmp_path: Path, name: str, content: bytes | None, reason: str
) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    result = run_command("edit", name, "x", "--token", "t")
    assert (result.exit_code, result.stdout) == (1, "")
    assert reason in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_read_only_file_is_not_edited_but_may_be_copied(file: Path, url: str, tmp_path: Path) -> None:
    file.chmod(0o444)
    refused = run_command("edit", str(file), "x", "--url", url, "--token", "good")
    assert (refused.exit_code, "is read-only" in refused.stderr) == (1, True)
    copied = run_command("edit", str(file), "x", "--url", url, "--token", "good", "--out", str(tmp_path / "out.html"))
    assert copied.exit_code == 0


@pytest.mark.parametrize(("out", "error_text"), [("build", "is a folder"), ("page.html/copy.html", "no folder")])
def test_a_place_where_no_file_can_be_is_refused_before_the_model_is_asked(
    file: Path, url: str, script: ServiceScript, tmp_path: Path, out: str, error_text: str
) -> None:
    (tmp_path / "build").mkdir()
    result = run_command("edit", str(file), "x", "--url", url, "--token", "good", "--out", str(tmp_path / out))
    assert (result.exit_code, error_text in result.stderr) == (1, True)
    assert script.requests == []


PROGRAM = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # shells ignore SIGINT in the background, where tests may run
from fermata_client.cli import main
main()
"""


def fermata(*arguments: str) -> list[str]:
    return [sys.executable, "-c", PROGRAM, *arguments]


def test_the_installed_command_edits_a_page(file: Path, url: str) -> None:
    process = subprocess.run(
        fermata("edit", str(file), "add", "--url", url, "--token", "good", "--json"),
        capture_output=True,
        timeout=BACKSTOP_SECONDS,
        check=False,
    )
    assert process.returncode == 0
    assert json.loads(process.stdout)["status"] == "done"
    assert b"\x1b" not in process.stdout + process.stderr


def test_ctrl_c_cancels_the_turn_once_and_exits_with_130(file: Path, url: str, script: ServiceScript) -> None:
    script.answer_faults = deque([503] * 1000)  # the turn waits for its answer for as long as we like
    process = subprocess.Popen(
        fermata("edit", str(file), "add", "--url", url, "--token", "good", "--json"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    while not script.posted_answers and process.poll() is None:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=BACKSTOP_SECONDS)
    assert (process.returncode, script.cancel_count) == (130, 1)
    assert stderr.endswith(b"fermata: stopped.\n")
    assert json.loads(stdout)["status"] == "cancelled"
