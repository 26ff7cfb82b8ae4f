"""Every `fermata` command, every option of one and every selected test that a document shows exists."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click

from fermata_client.cli import main

ROOT = Path(__file__).parents[2]
DOCUMENTS = (*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"))
CONTINUED_LINE = re.compile(r"\\\n\s*")
COMMAND_LINE = re.compile(r"^(?:\$ )?(?:\.venv/bin/)?fermata (?P<arguments>.+)$", re.MULTILINE)
"""A command in a code block, with or without its prompt."""
COMMAND_IN_TEXT = re.compile(r"`(?:\.venv/bin/)?fermata (?P<arguments>[^`]+)`")
SELECTED_TEST = re.compile(r"pytest (?P<file>tests/\S+\.py) -k \"(?P<word>\w+)\"")
OPTION = re.compile(r"--[a-z][a-z-]*")


def list_documented_commands(text: str) -> list[str]:
    text = CONTINUED_LINE.sub(" ", text)
    return [match["arguments"] for pattern in (COMMAND_LINE, COMMAND_IN_TEXT) for match in pattern.finditer(text)]


def find_unknown_words(arguments: str) -> Iterator[str]:
    """Yield the subcommand that no group has, or the options that the command has not."""
    words = iter(shlex.split(arguments, comments=True))
    command: click.Command = main
    context = click.Context(main)
    for word in words:
        if not isinstance(command, click.Group):
            break
        subcommand = command.get_command(context, word)
        if subcommand is None and not word.startswith("-"):
            yield word
            return
        command = subcommand or command
    known = {name for parameter in command.params for name in parameter.opts + parameter.secondary_opts}
    yield from (word for word in shlex.split(arguments, comments=True) if OPTION.fullmatch(word) and word not in known)


def test_every_command_and_option_in_a_document_exists() -> None:
    shown = {(path.name, arguments) for path in DOCUMENTS for arguments in list_documented_commands(path.read_text())}
    unknown = {(*command, word) for command in shown for word in find_unknown_words(command[1])}
    assert len(shown) > 30
    assert unknown == set()


def test_every_selection_of_a_test_selects_one() -> None:
    shown = {match.groups() for path in DOCUMENTS for match in SELECTED_TEST.finditer(path.read_text())}
    assert shown
    names = {(file, word): re.findall(rf"def test_\w*{word}", (ROOT / file).read_text()) for file, word in shown}
    assert [selection for selection, found in names.items() if not found] == []


def test_an_unknown_command_and_an_unknown_option_are_found() -> None:
    text = """```console
$ fermata tenant add bakery \\
      --issuer https://cms.example --colour red    # --not-an-option
.venv/bin/fermata remove page.html
```
`fermata audit --reconcile` `fermata tenant` `fermata tenant paint bakery`"""
    found = [word for arguments in list_documented_commands(text) for word in find_unknown_words(arguments)]
    assert found == ["--colour", "remove", "paint"]
