"""The diff on a terminal."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fermata_client.terminal.diff import colorize_line, should_use_color, unified_diff_lines


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_diff_shows_what_came_and_what_went() -> None:
    assert list(unified_diff_lines("a\nb\n", "a\nc\n", "page.html")) == [
        "--- page.html (before)",
        "+++ page.html (after)",
        "@@ -1,2 +1,2 @@",
        " a",
        "-b",
        "+c",
    ]


def test_a_missing_last_line_end_is_a_difference() -> None:
    assert list(unified_diff_lines("a", "a\n", "p"))[3:] == ["-a", "\\ No newline at end of file", "+a"]


@given(st.text())
def test_the_same_text_has_no_diff(text: str) -> None:
    assert list(unified_diff_lines(text, text, "p")) == []


def test_lines_are_painted_by_what_they_are() -> None:
    assert colorize_line("+new") == "\x1b[32m+new\x1b[0m"
    assert colorize_line("-old") == "\x1b[31m-old\x1b[0m"
    assert colorize_line(" same") == " same"


def test_colour_is_for_terminals_unless_an_option_says_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    assert (should_use_color(Terminal()), should_use_color(io.StringIO())) == (True, False)
    assert should_use_color(io.StringIO(), forced=True)
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert should_use_color(io.StringIO())
    monkeypatch.setenv("NO_COLOR", "1")
    assert not should_use_color(Terminal())
