"""Tell whether the brackets of a JSON text that grows are closed."""

import re

_BRACKETS = re.compile(r'\\.|[\\"{}\[\]]', re.S)
"""Matches what opens and closes, and escaped characters, so that they are skipped."""


class BracketCounter:
    """Count the brackets of a text; each piece is read once."""

    def __init__(self) -> None:
        self._depth = 0
        self._is_in_string = False
        self._escape = ""
        self.is_closed = False

    def add(self, text: str) -> None:
        text, self._escape = self._escape + text, ""
        for token in _BRACKETS.finditer(text):
            mark = token[0]
            if mark == "\\":
                self._escape = mark  # the escaped character is in the next piece
            elif mark == '"':
                self._is_in_string = not self._is_in_string
            elif not self._is_in_string and len(mark) == 1:
                self._depth += 1 if mark in "{[" else -1
                self.is_closed = self._depth <= 0
