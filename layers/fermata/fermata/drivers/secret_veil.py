"""Find a secret in text however it is written: as it is, encoded, escaped or in other case (decision 0096).

A server that repeats a key often does not repeat it plainly: it shows an `Authorization` header in base64, a URL, a
JSON text within JSON, or a hex dump.
"""

import base64
import re
import string
from collections.abc import Iterator, Sequence
from functools import cached_property
from urllib.parse import quote

REDACTED_KEY = "[redacted]"
MIN_VEILED_CHARS = 8
"""Shorter keys (a local server's `key`) are ordinary words, and stay."""
_MAX_PATTERN_CHARS = 64
"""Of a longer secret, its end is looked for in other spellings. The beginning alone opens nothing."""
_LOWER_CASE = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)
_MAX_PERCENT_LEVELS = 3
_MAX_BACKSLASHES = 4


class SecretVeil:
    """Replace secrets in texts. A text is read once for each secret, so the work grows with the length of the text.

    Args:
        secrets: The keys and tokens. Those with fewer than MIN_VEILED_CHARS characters are not looked for.
    """

    def __init__(self, *secrets: str) -> None:
        self._secrets = [secret for secret in secrets if len(secret) >= MIN_VEILED_CHARS]

    @cached_property
    def _patterns(self) -> Sequence[re.Pattern[str]]:
        """Compiled with the first text, because most requests have none."""
        return [re.compile("|".join(_iter_patterns(secret[-_MAX_PATTERN_CHARS:]))) for secret in self._secrets]

    def veil_text(self, text: str) -> str:
        if not text:
            return text
        for secret in self._secrets:
            text = text.replace(secret, REDACTED_KEY)
        for pattern in self._patterns:
            text = pattern.sub(REDACTED_KEY, text)
        return text


def list_literal_forms(secret: str) -> list[str]:
    """Return the usual spellings of a secret, in lower case, the longest first. Streams are searched for them."""
    data = secret.encode()
    once = quote(secret, safe="")
    escaped = secret.replace("/", "\\/")
    forms = {secret, once, quote(once, safe=""), escaped, data.hex(), *_iter_base64_cores(data)}
    return sorted({to_ascii_lower(form) for form in forms}, key=len, reverse=True)


def to_ascii_lower(text: str) -> str:
    """Return the text with A-Z in lower case, and as many characters as before."""
    return text.lower() if text.isascii() else text.translate(_LOWER_CASE)


def _iter_patterns(secret: str) -> Iterator[str]:
    data = secret.encode()
    yield f"(?i:{''.join(map(_escape_character, secret))})"
    yield "(?i:" + "[ :,-]?".join(f"{byte:02x}" for byte in data) + ")"
    for core in {core.replace("-", "+").replace("_", "/") for core in _iter_base64_cores(data)}:
        yield "".join(map(_escape_base64_character, core))


def _iter_base64_cores(data: bytes) -> Iterator[str]:
    """Yield what base64 makes of the data at each of three offsets, without the characters shared with neighbours."""
    for offset, shared in ((0, 0), (1, 2), (2, 3)):
        whole = (offset + len(data)) * 8 // 6
        encoded = base64.b64encode(bytes(offset) + data).decode()[shared:whole]
        yield encoded
        yield encoded.replace("+", "-").replace("/", "_")


def _escape_character(character: str) -> str:
    """Match a character as it is, after backslashes, percent-encoded, or as an escape of JSON, Python or HTML."""
    alternatives = [rf"\\{{0,{_MAX_BACKSLASHES}}}{re.escape(character)}"]
    code = ord(character)
    alternatives.append(rf"\\{{1,{_MAX_BACKSLASHES}}}(?:u{code:04x}|x{code:02x})" if code < 256 else "(?!)")
    alternatives.append(rf"&\#(?:0{{0,4}}{code}|x0{{0,4}}{code:x});")
    percent = rf"%(?:25){{0,{_MAX_PERCENT_LEVELS}}}"
    alternatives.append("".join(f"{percent}{byte:02x}" for byte in character.encode()))
    return f"(?:{'|'.join(alternatives)})"


def _escape_base64_character(character: str) -> str:
    if character == "+":
        return r"(?:[+-]|%(?:25){0,3}2[bB])"
    if character == "/":
        return r"(?:\\{0,4}[/_]|%(?:25){0,3}2[fF])"
    return re.escape(character)
