"""Exit codes and hints of commands, and what they refuse before a turn."""

import json
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from fermata_client.cli import main
from fermata_client.commands.common.program_name import suggest_command
from fermata_client.commands.turns.undo import undo
from fermata_client.service.connection_files import CONNECTED_FILE_NAME, user_connection_file, write_connection_file
from tests.client.commands.run_command import PAGE, run_command
from tests.client.scripted_events import done_event, number_events, ready_event, text_event
from tests.client.scripted_service import ServiceScript


def test_a_turn_that_changes_nothing_exits_with_3(file: Path, url: str, script: ServiceScript) -> None:
    script.events[:] = number_events(ready_event(), text_event("It is fine as it is."), done_event())
    result = run_command("edit", str(file), "x", "--url", url, "--token", "good")
    assert (result.exit_code, result.stderr) == (3, "fermata: nothing was changed.\n")
    listed = run_command("edit", str(file), "x", "--url", url, "--token", "good", "--json")
    assert (listed.exit_code, json.loads(listed.stdout)["changed"]) == (3, [])


def test_the_changes_that_are_shown_are_those_on_disk(
    file: Path, url: str, script: ServiceScript, monkeypatch: pytest.MonkeyPatch
) -> None:
    def save_old_text(*_: object) -> None:
        file.write_text(PAGE)

    monkeypatch.setattr("fermata_client.document.html_file.HtmlFile.write_copy", save_old_text)
    result = run_command("edit", str(file), "x", "--url", url, "--token", "good")
    assert (result.exit_code, "+  <p>b</p>" in result.stdout) == (3, False)


def test_what_others_save_meanwhile_is_not_shown_as_a_change_of_the_turn(
    file: Path, url: str, script: ServiceScript, monkeypatch: pytest.MonkeyPatch
) -> None:
    script.events[:] = number_events(ready_event(), text_event("It is fine as it is."), done_event())
    monkeypatch.setattr(
        "fermata_client.document.html_file.HtmlFile.write_copy", lambda _: file.write_text(PAGE + "<p>theirs</p>\n")
    )
    result = run_command("edit", str(file), "x", "--url", url, "--token", "good")
    assert (result.exit_code, result.stderr) == (3, "fermata: nothing was changed.\n")
    assert "theirs" not in result.stdout


def test_wrong_usage_exits_with_2(file: Path) -> None:
    for arguments in (["edit"], ["edit", str(file), "x", "--paint"], ["paint"]):
        assert run_command(*arguments).exit_code == 2


def test_an_error_is_json_too_when_that_was_asked_for(url: str) -> None:
    result = run_command("edit", "gone.html", "x", "--url", url, "--token", "good", "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout) == {"status": "failed", "error": "There is no file gone.html."}
    assert result.stderr == "fermata: There is no file gone.html.\n"


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["edit", "--json"], "Missing argument 'FILE'."),
        (["edit", "page.html", "x", "--json", "--paint"], "No such option '--paint'."),
        (["--json", "models"], "No such option '--json'."),
        (["paint", "--json"], "No such command 'paint'."),
        (["credentials", "add", "--json"], "No such option '--json'."),
        (["credentials", "paint", "--json"], "No such command 'paint'."),
        (["audit", "--json", "--since"], "Option '--since' requires an argument."),
    ],
)
def test_wrong_usage_is_json_too_when_that_was_asked_for(arguments: list[str], reason: str) -> None:
    result = run_command(*arguments)
    printed = json.loads(result.stdout)
    assert (result.exit_code, printed["status"]) == (2, "failed")
    assert printed["error"].startswith(reason)
    assert reason in result.stderr


@pytest.mark.parametrize("arguments", [["Caf\udce9"], ["Caf\xe9", "--model", "m\udcff"]])
def test_bytes_that_are_no_text_are_wrong_usage(file: Path, url: str, arguments: list[str]) -> None:
    result = run_command("edit", str(file), *arguments, "--url", url, "--token", "good", "--json")
    assert result.exit_code == 2
    assert "is no text in UTF-8" in json.loads(result.stdout)["error"]
    assert run_command("edit", str(file), "Caf\xe9 \U0001f600", "--url", url, "--token", "good").exit_code == 0


def test_a_name_of_a_file_that_is_no_text_is_refused_before_anything_is_written(tmp_path: Path, url: str) -> None:
    file = tmp_path / "Caf\udce9.html"
    file.write_text(PAGE)
    result = run_command("edit", str(file), "add", "--url", url, "--token", "good")
    assert (result.exit_code, file.read_text()) == (2, PAGE)
    assert "FILE is no text in UTF-8. Rename the file." in result.output


def test_what_is_given_as_text_asks_for_no_json() -> None:
    assert run_command("edit", "--paint", "--", "page.html", "--json").stdout == ""


@pytest.mark.parametrize("name", ["page.html", "my page's.html", "-page.html", "$(x).html"])
def test_the_hint_to_undo_can_be_pasted(tmp_path: Path, url: str, name: str) -> None:
    (tmp_path / name).write_text(PAGE)
    result = run_command("edit", "--url", url, "--token", "good", "--", name, "add")
    program, command, *arguments = shlex.split(result.stderr.strip().removeprefix("Undo it with: "))
    assert (program, command) == ("fermata", "undo")
    context = undo.make_context("undo", arguments)
    assert (context.params["file"].resolve(), context.params["url"]) == (tmp_path / name, url)


def test_a_hint_with_an_id_that_looks_like_an_option_can_be_pasted() -> None:
    hint = suggest_command("undo", "-x y", "a.html", through="-1", url="http://127.0.0.1:9")
    assert hint == "fermata undo --through=-1 --url http://127.0.0.1:9 -- '-x y' a.html"
    params = undo.make_context("undo", shlex.split(hint)[2:]).params
    assert (params["bridge"], str(params["file"]), params["through"]) == ("-x y", "a.html", "-1")


def test_the_hint_to_continue_can_be_pasted(url: str) -> None:
    result = run_command("chat", "hi", "--url", url, "--token", "good")
    _, *arguments = shlex.split(result.stderr.strip().removeprefix("Continue with: "))
    assert arguments == ["chat", "Go on", "--conversation", "conv-1", "--url", url]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("site.css", "/* <p> */ a { top: 0 }"),
        ("app.js", "const a = `<p>x</p>`;"),
        ("README.md", "<p>Hello</p>"),
        ("logo.svg", "<svg><p>x</p></svg>"),
        ("feed", "<?xml version='1.0'?><feed><title>x</title></feed>"),
        ("data.json", '{"a": "<p>"}'),
        ("words", "Use <b> for bold."),
        ("page.html", "<p>\x00</p>"),
    ],
)
def test_what_is_no_html_is_refused(tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / name).write_text(content)
    result = run_command("edit", name, "x", "--token", "t")
    assert (result.exit_code, result.stderr) == (1, f"fermata: {name} is not an HTML page.\n")


def test_a_page_whose_styles_cannot_be_read_is_refused_with_a_sentence(file: Path, url: str) -> None:
    file.write_text(f"<style>{'.a {' * 2_000}{'}' * 2_000}</style><p>x</p>")
    result = run_command("edit", str(file), "x", "--url", url, "--token", "good")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == "fermata: Rules of a style sheet lie more than 50 deep in each other.\n"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("index.php", "<?php get_header(); ?>\n<main>x</main>"),
        ("page.njk", "---\na: b\n---\n<p>x</p>"),
        ("page", "<!doctype html>\n<!-- x -->\n<html></html>"),
    ],
)
def test_a_page_of_another_name_is_edited(tmp_path: Path, url: str, name: str, content: str) -> None:
    (tmp_path / name).write_text(content)
    assert "is not an HTML page" not in run_command("edit", name, "x", "--url", url, "--token", "good").stderr


def test_a_model_that_nobody_has_is_refused_before_a_turn(file: Path, url: str, script: ServiceScript) -> None:
    script.answers_by_path = {
        "/defaults": {"defaults": {"site": {"credentialId": "k1", "modelId": "claude-opus-4-5"}}},
        "/credentials": {"credentials": [{"id": "k1", "providerId": "anthropic"}]},
        "/providers/anthropic/models": {"models": [{"id": "claude-opus-4-5"}, {"id": "llama3:8b"}]},
    }
    refused = run_command("edit", str(file), "x", "--url", url, "--token", "good", "--model", "claude-opus-9")
    assert refused.exit_code == 1
    assert refused.stderr == (
        "fermata: None of your credentials opens a model claude-opus-9. There are: claude-opus-4-5. "
        f"All of them: fermata models --url {url}\n"
    )
    assert [path for method, path, _ in script.requests if method == "POST"] == []
    for model in ("claude-opus-4-5", "llama3", "llama3:8b", "claude-opus-4-5:nitro"):
        assert run_command("edit", str(file), "x", "--url", url, "--token", "good", "--model", model).exit_code == 0


def test_an_undo_says_at_once_that_nothing_runs(
    file: Path, url: str, script: ServiceScript, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_seconds: float) -> None:
        raise AssertionError("It waits for a service that does not run.")

    monkeypatch.setattr("time.sleep", fail)
    monkeypatch.setattr("fermata_client.service.retry.RetryPolicy.sleep", fail)
    result = run_command("undo", "bridge-1", str(file), "--url", "http://127.0.0.1:9", "--token", "good")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("fermata: Fermata is not running at http://127.0.0.1:9.")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_gets_its_completion(shell: str) -> None:
    result = run_command("completion", shell)
    assert result.exit_code == 0
    assert "_FERMATA_COMPLETE" in result.stdout


def test_what_is_no_address_is_refused_before_a_token_is_asked_for() -> None:
    result = CliRunner().invoke(main, ["connect", "not-a-url"], input="")
    assert (result.exit_code, "'not-a-url' is not an address" in result.stderr) == (1, True)


def test_a_saved_connection_that_cannot_be_read_names_the_command_that_saves_it() -> None:
    file = user_connection_file(CONNECTED_FILE_NAME)
    write_connection_file(file, {"url": 1})
    result = run_command("models")
    assert (result.exit_code, "Connect again with `fermata connect`" in result.stderr) == (1, True)


def test_connect_saves_an_address_for_every_folder(
    url: str, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: ServiceScript
) -> None:
    script.answers_by_path = {"/conversations": {"conversations": []}}
    refused = CliRunner().invoke(main, ["connect", url], input="\n")
    assert (refused.exit_code, "There is no token" in refused.stderr) == (1, True)
    result = CliRunner().invoke(main, ["connect", url], input="good\n")
    assert (result.exit_code, f"Connected to {url}" in result.stdout) == (0, True)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert run_command("edit", str(file), "add").exit_code == 0


@pytest.mark.parametrize("arguments", [["edit", "{file}", "x"], ["chat", "x"], ["models"]])
def test_ctrl_c_before_a_turn_exits_with_130_too(
    file: Path, url: str, arguments: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("fermata_client.service.transport.httpx.Client.build_request", interrupt)
    given = [word.format(file=file) for word in arguments] + ["--url", url, "--token", "good"]
    result = run_command(*given)
    assert (result.exit_code, result.stdout, result.stderr) == (130, "", "fermata: stopped.\n")
    listed = run_command(*given, "--json")
    assert (listed.exit_code, json.loads(listed.stdout)) == (130, {"status": "interrupted"})


@pytest.mark.parametrize(
    "arguments",
    [
        ["chat", " "],
        ["edit", "page.html", ""],
        ["chat", "Hi", "--conversation", "c1", "--model", "m"],
        ["audit", "--since", "yesterday"],
    ],
)
def test_what_no_service_could_do_is_wrong_usage_and_sends_nothing(
    arguments: list[str], url: str, script: ServiceScript
) -> None:
    result = run_command(*arguments, "--url", url, "--token", "good", "--json")
    assert (result.exit_code, json.loads(result.stdout)["status"]) == (2, "failed")
    assert script.requests == []


@pytest.mark.parametrize(
    "arguments",
    [
        ["policy"],
        ["agents", "show", "a"],
        ["privacy", "export-status", "e"],
        ["privacy", "erase-status", "e"],
        ["listen"],
    ],
)
def test_commands_whose_output_is_json_anyway_print_errors_as_json_if_asked(arguments: list[str]) -> None:
    unreachable = ("--url", "http://127.0.0.1:9", "--token", "good")
    result = run_command(*arguments, *unreachable, "--json")
    assert (result.exit_code, json.loads(result.stdout)["status"]) == (1, "failed")
    assert run_command(*arguments, *unreachable).stdout == ""


def test_the_schema_of_agents_may_be_asked_for_as_json() -> None:
    assert json.loads(run_command("agents", "schema", "--json").stdout) == json.loads(
        run_command("agents", "schema").stdout
    )


def test_the_token_to_save_may_be_in_the_environment(
    url: str, script: ServiceScript, monkeypatch: pytest.MonkeyPatch
) -> None:
    script.answers_by_path = {"/conversations": {"conversations": []}}
    monkeypatch.setenv("FERMATA_TOKEN", "good")
    assert run_command("connect", url).exit_code == 0
