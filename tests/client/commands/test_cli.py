"""`fermata edit` and `fermata chat`: output, files, exit codes."""

import json
import re
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from fermata_client.cli import main
from fermata_client.service.json_types import Event
from tests.client.scripted_events import (
    context_event,
    done_event,
    number_events,
    ready_event,
    text_event,
    tool_call_event,
    tool_request_event,
    tool_result_event,
    usage_event,
)
from tests.client.scripted_service import ServiceScript, serve_script
from tests.images import make_image
from tests.waiting import BACKSTOP_SECONDS

PAGE = "<!doctype html>\n<title>T</title>\n<main>\n  <p>a</p>\n</main>\n"


@pytest.fixture(autouse=True)
def isolated_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide the state file and the environment of the machine that runs the tests."""
    monkeypatch.chdir(tmp_path)
    for name in ("FERMATA_URL", "FERMATA_TOKEN", "NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "page.html"
    path.write_text(PAGE)
    return path


def editing_turn(end: Event | None = None) -> list[Event]:
    insert = {"parentId": "n2", "html": "<p>b</p>\n<p>c</p>"}
    return number_events(
        ready_event(),
        text_event("I add two paragraphs."),
        tool_call_event(1, "insertHtml", insert),
        context_event(),
        tool_request_event(1, "insertHtml", insert),
        tool_result_event(1),
        text_event("Done \x1b[31mred\x1b[0m."),
        usage_event(),
        end or done_event(),
    )


@pytest.fixture
def script() -> ServiceScript:
    return ServiceScript(editing_turn())


@pytest.fixture
def url(script: ServiceScript) -> Iterator[str]:
    with serve_script(script) as address:
        yield address


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, list(arguments))


def test_edit_shows_the_stream_the_tools_the_diff_and_the_summary(file: Path, url: str) -> None:
    result = run("edit", str(file), "add", "--url", url, "--token", "good", "--json")
    assert result.exit_code == 0
    assert result.stderr == ""
    assert result.stdout.splitlines()[:-1] == [
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
    summary = json.loads(result.stdout.splitlines()[-1])
    assert (summary["status"], summary["rounds"], summary["browserTools"], summary["events"]) == ("done", 2, 1, 9)
    assert file.read_text() == PAGE.replace("  <p>a</p>\n", "  <p>a</p>\n  <p>b</p>\n  <p>c</p>\n")


def test_edit_writes_elsewhere_when_asked(file: Path, url: str, tmp_path: Path) -> None:
    out = tmp_path / "build" / "new.html"
    result = run("edit", str(file), "add", "--url", url, "--token", "good", "--out", str(out))
    assert result.exit_code == 0
    assert file.read_text() == PAGE
    assert "<p>c</p>" in out.read_text()
    assert re.fullmatch(rf"Undo it with: fermata undo \S+ {re.escape(str(out))}\n", result.stderr)


def test_edit_shows_what_changed_beside_the_page_too(
    file: Path, url: str, script: ServiceScript, tmp_path: Path
) -> None:
    (tmp_path / "site.css").write_text(".a {\n  top: 0;\n}\n")
    file.write_text('<head>\n  <link rel="stylesheet" href="site.css">\n  <style>b { c: d }</style>\n</head>\n')
    rules = {"css": ".a { top: 1px }\n.new { top: 0 }"}
    script.events[:] = number_events(
        ready_event(), tool_call_event(1, "applyCss", rules), tool_request_event(1, "applyCss", rules), done_event()
    )
    result = run("edit", str(file), "add", "--url", url, "--token", "good", "--css", str(tmp_path / "site.css"))
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
    result = run("edit", str(file), "x", "--url", url, "--token", "good", "--css", "other.css")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == (
        "fermata: page.html does not load other.css from its own folder. Link it there, or leave --css out.\n"
    )


def test_edit_sends_the_snapshot_of_the_page_with_the_prompt_and_with_every_answer(
    file: Path, url: str, script: ServiceScript
) -> None:
    run("edit", str(file), "add", "--url", url, "--token", "good", "--model", "m-1")
    bodies = {path: body for method, path, body in script.requests if method == "POST"}
    assert bodies["/conversations"] == {"scope": "site", "modelId": "m-1"}
    assert bodies["/chat/site"]["snapshot"]["page"]["title"] == "T"
    assert bodies["/tool-result"]["snapshot"]["page"]["id"] == "page"


def test_colours_are_there_when_forced(file: Path, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    result = CliRunner().invoke(main, ["edit", str(file), "add", "--url", url, "--token", "good"], color=True)
    assert "\x1b[32m+  <p>b</p>\x1b[0m" in result.stdout


def test_chat_shows_the_answer_and_how_to_go_on(url: str, script: ServiceScript) -> None:
    script.events[:] = number_events(ready_event(), text_event("Hello "), text_event("there."), done_event())
    result = run("chat", "hi", "--url", url, "--token", "good")
    assert (result.exit_code, result.stdout) == (0, "Hello there.\n")
    assert "fermata chat --conversation conv-1" in result.stderr


def test_chat_takes_pictures_along_in_their_order(url: str, script: ServiceScript, tmp_path: Path) -> None:
    script.events = number_events(ready_event(), text_event("Nice."), done_event())
    for name, kind in (("a.png", "PNG"), ("b.jpg", "JPEG"), ("c.webp", "WEBP"), ("d.gif", "GIF")):
        (tmp_path / name).write_bytes(make_image(kind=kind))
    images = [part for name in ("a.png", "b.jpg", "c.webp", "d.gif") for part in ("--image", name)]
    result = run("chat", "look", *images, "--url", url, "--token", "good")
    assert result.exit_code == 0
    body = next(body for method, path, body in script.requests if path.startswith("/chat/"))
    assert body["content"][0] == {"kind": "text", "text": "look"}
    kinds = [part["mimeType"] for part in body["content"][1:]]
    assert kinds == ["image/png", "image/jpeg", "image/webp", "image/gif"]


def test_chat_sends_nothing_that_is_no_picture(url: str, script: ServiceScript, file: Path) -> None:
    result = run("chat", "look", "--image", str(file), "--url", url, "--token", "good")
    assert (result.exit_code, "is not an image that can be sent" in result.stderr) == (1, True)
    assert script.requests == []


def test_chat_goes_on_in_the_scope_of_its_conversation(url: str, script: ServiceScript) -> None:
    script.events[:] = number_events(ready_event(), done_event())
    assert run("chat", "more", "--url", url, "--token", "good", "--conversation", "conv-9").exit_code == 0
    posts = [(path, body["conversationId"]) for method, path, body in script.requests if method == "POST"]
    assert posts == [("/chat/content", "conv-9")]


def test_chat_begins_in_the_scope_that_was_named(url: str, script: ServiceScript) -> None:
    script.events[:] = number_events(ready_event(), done_event())
    assert run("chat", "hi", "--url", url, "--token", "good", "--scope", "content").exit_code == 0
    assert [path for method, path, _ in script.requests if method == "POST"] == ["/conversations", "/chat/content"]


def test_a_conversation_keeps_its_scope(url: str) -> None:
    result = run("chat", "more", "--url", url, "--token", "good", "--conversation", "c", "--scope", "site")
    assert (result.exit_code, result.stderr.startswith("fermata: A conversation keeps its scope.")) == (1, True)


def test_a_conversation_keeps_its_model(url: str) -> None:
    result = run("chat", "more", "--url", url, "--token", "good", "--conversation", "c", "--model", "m")
    assert (result.exit_code, result.stderr.startswith("fermata: A conversation keeps its model.")) == (1, True)


@pytest.mark.parametrize("command", [["edit", "page.html", "x"], ["chat", "x"]], ids=["edit", "chat"])
def test_a_service_that_is_not_up_says_how_to_start_it(command: list[str], file: Path) -> None:
    result = run(*command, "--url", "http://127.0.0.1:9", "--token", "t")
    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr == (
        "fermata: Fermata is not running at http://127.0.0.1:9. "
        "Start it with `make run`, or name another address with --url.\n"
    )


def test_a_refused_token_is_one_sentence(file: Path, url: str) -> None:
    result = run("edit", str(file), "x", "--url", url, "--token", "bad")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "does not accept this token" in result.stderr


def test_without_a_token_the_service_is_not_even_asked(file: Path) -> None:
    result = run("edit", str(file), "x")
    assert result.exit_code == 1
    assert result.stderr.startswith("fermata: There is no token for http://127.0.0.1:8787. Start the service with")


def test_a_turn_that_ended_with_an_error_shows_what_was_done_and_fails(
    file: Path, url: str, script: ServiceScript
) -> None:
    script.events[:] = editing_turn({"type": "error", "message": "The provider is overloaded."})
    result = run("edit", str(file), "x", "--url", url, "--token", "good", "--json")
    assert result.exit_code == 1
    assert "+  <p>b</p>" in result.stdout
    assert json.loads(result.stdout.splitlines()[-1])["error"] == "The provider is overloaded."
    assert result.stderr == "fermata: The turn ended with an error: The provider is overloaded.\n"


def test_a_busy_conversation_is_one_sentence(file: Path, url: str, script: ServiceScript) -> None:
    script.start_faults = deque([409])
    result = run("edit", str(file), "x", "--url", url, "--token", "good")
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
    result = run("edit", name, "x", "--token", "t")
    assert (result.exit_code, result.stdout) == (1, "")
    assert reason in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_read_only_file_is_not_edited_but_may_be_copied(file: Path, url: str, tmp_path: Path) -> None:
    file.chmod(0o444)
    refused = run("edit", str(file), "x", "--url", url, "--token", "good")
    assert (refused.exit_code, "is read-only" in refused.stderr) == (1, True)
    copied = run("edit", str(file), "x", "--url", url, "--token", "good", "--out", str(tmp_path / "out.html"))
    assert copied.exit_code == 0


@pytest.mark.parametrize(("out", "error_text"), [("build", "is a folder"), ("page.html/copy.html", "no folder")])
def test_a_place_where_no_file_can_be_is_refused_before_the_model_is_asked(
    file: Path, url: str, script: ServiceScript, tmp_path: Path, out: str, error_text: str
) -> None:
    (tmp_path / "build").mkdir()
    result = run("edit", str(file), "x", "--url", url, "--token", "good", "--out", str(tmp_path / out))
    assert (result.exit_code, error_text in result.stderr) == (1, True)
    assert script.requests == []


def test_token_prints_what_make_run_wrote(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".fermata").mkdir()
    (tmp_path / ".fermata" / "local.json").write_text('{"url": "http://127.0.0.1:9999/", "token": "abc"}')
    (tmp_path / "deep" / "down").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "deep" / "down")
    assert run("token").stdout == "abc\n"
    assert run("token", "--url", "http://127.0.0.1:9999").stdout == "abc\n"


def test_a_local_token_is_never_sent_to_another_address(tmp_path: Path) -> None:
    (tmp_path / ".fermata").mkdir()
    (tmp_path / ".fermata" / "local.json").write_text('{"url": "http://127.0.0.1:9999", "token": "abc"}')
    result = run("token", "--url", "http://elsewhere.example")
    assert (result.exit_code, "There is no token for http://elsewhere.example" in result.stderr) == (1, True)


@pytest.mark.parametrize("url", ["notaurl", "ftp://x", "http://", "http://a b", "http://[::1", "http://x:99999", "é"])
@pytest.mark.parametrize("command", [["chat", "hi"], ["token"], ["audit"]], ids=" ".join)
def test_what_is_no_address_is_one_sentence(command: list[str], url: str) -> None:
    result = run(*command, "--url", url, "--token", "t")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == f"fermata: {url!r} is not an address. Write it like http://127.0.0.1:8787.\n"


@pytest.mark.parametrize("token", ["a\nb", "a b", "clé", "a\0b"])
def test_what_is_no_token_is_one_sentence_that_does_not_repeat_it(token: str) -> None:
    result = run("chat", "hi", "--token", token)
    assert result.exit_code == 1
    assert (
        result.stderr
        == "fermata: The token has characters that no token contains. Give the token alone, on one line.\n"
    )


def test_a_line_end_behind_a_token_is_no_part_of_it() -> None:
    assert run("token", "--token", " abc\n").stdout == "abc\n"


def test_the_environment_wins_over_the_state_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".fermata").mkdir()
    (tmp_path / ".fermata" / "local.json").write_text('{"url": "http://127.0.0.1:9999", "token": "abc"}')
    monkeypatch.setenv("FERMATA_TOKEN", "from-env")
    assert run("token").stdout == "from-env\n"


def test_a_broken_state_file_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / ".fermata").mkdir()
    (tmp_path / ".fermata" / "local.json").write_text("{")
    result = run("token")
    assert (result.exit_code, "cannot be read" in result.stderr) == (1, True)


@pytest.mark.parametrize("command", ["edit", "chat", "token"])
def test_every_command_explains_itself(command: str) -> None:
    result = run(command, "--help")
    assert result.exit_code == 0
    assert all(option in result.stdout for option in ("--url", "--model", "--token"))


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
    assert (process.returncode, process.stderr) == (0, b"")
    assert json.loads(process.stdout.decode().splitlines()[-1])["status"] == "done"
    assert b"\x1b" not in process.stdout


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
    assert stderr == b"fermata: stopped.\n"
    assert json.loads(stdout.decode().splitlines()[-1])["status"] == "cancelled"
