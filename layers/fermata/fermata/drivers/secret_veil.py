"""Find a secret in text however it is written: as it is, encoded, escaped or in other case (decision 0096).

A server that repeats a key often does not repeat it plainly: it shows an `Authorization` header in base64, a URL, a
JSON text within JSON, a hex dump or a list of bytes, breaks it into lines, or cuts it off.
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
_CODE_POINT_FORMS = (("\\u", 4), ("\\x", 2), ("%", 2))
"""How each character is written where all are escaped: in JSON, in Python and in URLs."""
_BETWEEN_CHARACTERS = r"(?:[\s\x00\u200b\"',]|\\{1,4}[rn]){0,4}"
_BETWEEN_BASE64 = r"(?:\s|\\{1,4}[rn]){0,4}"
_BETWEEN_HEX = r"(?:[\s:,-]|\\{1,4}[rnx]|0x|00){0,4}"
_BETWEEN_NUMBERS = r"[\s,]{1,4}"
"""What may stand between two characters of a secret: where a line ends, or in a list or a dump."""


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
        """Return the text with each spelling of each secret replaced."""
        if not text:
            return text
        for secret in self._secrets:
            text = _veil_parts(text.replace(secret, REDACTED_KEY), secret)
        for pattern in self._patterns:
            text = pattern.sub(REDACTED_KEY, text)
        return text


def list_literal_forms(secret: str) -> list[str]:
    """Return the usual spellings of a secret, in lower case, the longest first. Streams are searched for them."""
    data = secret.encode()
    once = quote(secret, safe="")
    escaped = secret.replace("/", "\\/")
    code_points = {form for mark, digits in _CODE_POINT_FORMS for form in _iter_escaped(secret, mark, digits)}
    forms = {secret, once, quote(once, safe=""), escaped, data.hex(), *code_points, *_iter_base64_cores(data)}
    return sorted({to_ascii_lower(form) for form in forms}, key=len, reverse=True)


def _iter_escaped(secret: str, mark: str, digits: int) -> Iterator[str]:
    """Yield the secret with each character as its number, and with each that is no letter or digit."""
    numbers = [f"{mark}{ord(character):0{digits}x}" for character in secret]
    yield "".join(numbers)
    yield "".join(each if each.isalnum() else number for each, number in zip(secret, numbers, strict=True))


def to_ascii_lower(text: str) -> str:
    """Return the text with A-Z in lower case, and as many characters as before."""
    return text.lower() if text.isascii() else text.translate(_LOWER_CASE)


def _veil_parts(text: str, secret: str) -> str:
    """Replace what is at least half of a secret: it was cut off, or its beginning or end is shown."""
    half = max(len(secret) // 2, MIN_VEILED_CHARS)
    size = half // 2
    for start in range(0, len(secret) - size + 1, size):
        pieces, shown_from, found = list[str](), 0, text.find(secret[start : start + size])
        while found >= 0:
            begin, end = _extend_match(text, secret, found, start, size, shown_from)
            if end - begin >= half:
                pieces += [text[shown_from:begin], REDACTED_KEY]
                shown_from = end
            found = text.find(secret[start : start + size], max(end, found + 1))
        text = "".join([*pieces, text[shown_from:]])
    return text


def _extend_match(text: str, secret: str, found: int, start: int, size: int, shown_from: int) -> tuple[int, int]:
    """Return where the text is equal to the secret, around a part of it that was found."""
    begin, end = found, found + size
    while begin > shown_from and start > 0 and text[begin - 1] == secret[start - 1]:
        begin, start = begin - 1, start - 1
    position = start + (end - begin)
    while end < len(text) and position < len(secret) and text[end] == secret[position]:
        end, position = end + 1, position + 1
    return begin, end


def _iter_patterns(secret: str) -> Iterator[str]:
    data = secret.encode()
    yield f"(?i:{_BETWEEN_CHARACTERS.join(map(_escape_character, secret))})"
    yield f"(?i:{_BETWEEN_HEX.join(f'{byte:02x}' for byte in data)})"
    yield _BETWEEN_NUMBERS.join(map(str, data))
    for core in {core.replace("-", "+").replace("_", "/") for core in _iter_base64_cores(data)}:
        yield _BETWEEN_BASE64.join(map(_escape_base64_character, core))


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
