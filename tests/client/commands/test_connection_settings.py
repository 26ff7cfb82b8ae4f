"""Address and token of a command: where they come from, and what is wrong with them."""

from pathlib import Path

import pytest

from tests.client.commands.run_command import run_command


@pytest.mark.parametrize("command", [["edit", "page.html", "x"], ["chat", "x"]], ids=["edit", "chat"])
def test_a_service_that_is_not_up_says_how_to_start_it(command: list[str], file: Path) -> None:
    result = run_command(*command, "--url", "http://127.0.0.1:9", "--token", "t")
    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr == (
        "fermata: Fermata is not running at http://127.0.0.1:9. "
        "Start it with `make run`, or name another address with --url.\n"
    )


def test_a_refused_token_is_one_sentence(file: Path, url: str) -> None:
    result = run_command("edit", str(file), "x", "--url", url, "--token", "bad")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "does not accept this token" in result.stderr


def test_without_a_token_the_service_is_not_even_asked(file: Path) -> None:
    result = run_command("edit", str(file), "x")
    assert result.exit_code == 1
    assert result.stderr.startswith("fermata: There is no token for http://127.0.0.1:8787. Start the service with")


def test_token_prints_what_make_run_wrote(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".fermata").mkdir()
    (tmp_path / ".fermata" / "local.json").write_text('{"url": "http://127.0.0.1:9999/", "token": "abc"}')
    (tmp_path / "deep" / "down").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "deep" / "down")
    assert run_command("token").stdout == "abc\n"
    assert run_command("token", "--url", "http://127.0.0.1:9999").stdout == "abc\n"


def test_a_local_token_is_never_sent_to_another_address(tmp_path: Path) -> None:
    (tmp_path / ".fermata").mkdir()
    (tmp_path / ".fermata" / "local.json").write_text('{"url": "http://127.0.0.1:9999", "token": "abc"}')
    result = run_command("token", "--url", "http://elsewhere.example")
    assert (result.exit_code, "There is no token for http://elsewhere.example" in result.stderr) == (1, True)


@pytest.mark.parametrize("url", ["notaurl", "ftp://x", "http://", "http://a b", "http://[::1", "http://x:99999", "é"])
@pytest.mark.parametrize("command", [["chat", "hi"], ["token"], ["audit"]], ids=" ".join)
def test_what_is_no_address_is_one_sentence(command: list[str], url: str) -> None:
    result = run_command(*command, "--url", url, "--token", "t")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == f"fermata: {url!r} is not an address. Write it like http://127.0.0.1:8787.\n"


@pytest.mark.parametrize("token", ["a\nb", "a b", "clé", "a\0b"])
def test_what_is_no_token_is_one_sentence_that_does_not_repeat_it(token: str) -> None:
    result = run_command("chat", "hi", "--token", token)
    assert result.exit_code == 1
    assert (
        result.stderr
        == "fermata: The token has characters that no token contains. Give the token alone, on one line.\n"
    )


def test_a_line_end_behind_a_token_is_no_part_of_it() -> None:
    assert run_command("token", "--token", " abc\n").stdout == "abc\n"


def test_the_environment_wins_over_the_state_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".fermata").mkdir()
    (tmp_path / ".fermata" / "local.json").write_text('{"url": "http://127.0.0.1:9999", "token": "abc"}')
    monkeypatch.setenv("FERMATA_TOKEN", "from-env")
    assert run_command("token").stdout == "from-env\n"


def test_a_broken_state_file_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / ".fermata").mkdir()
    (tmp_path / ".fermata" / "local.json").write_text("{")
    result = run_command("token")
    assert (result.exit_code, "cannot be read" in result.stderr) == (1, True)


@pytest.mark.parametrize("command", ["edit", "chat", "token"])
def test_every_command_explains_itself(command: str) -> None:
    result = run_command(command, "--help")
    assert result.exit_code == 0
    assert all(option in result.stdout for option in ("--url", "--model", "--token"))
