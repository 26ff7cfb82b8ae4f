"""Turn the bytes of a file into text that a model can read."""

import codecs

_NUL_SEARCH_BYTES = 8_192
"""A NUL among so many first bytes makes a file a binary one, as Git has it."""
_MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))


def decode_text(content: bytes) -> str | None:
    """Return the text of a file; None for one that is no text.

    UTF-8 is read, and UTF-16 with its mark. Bytes that are neither become U+FFFD. A character that the end of the
    bytes has cut is left out.
    """
    for mark, encoding in _MARKS:
        if content.startswith(mark):
            return _decode(content[len(mark) :], encoding)
    return None if b"\0" in content[:_NUL_SEARCH_BYTES] else _decode(content, "utf-8")


def _decode(content: bytes, encoding: str) -> str:
    return codecs.getincrementaldecoder(encoding)("replace").decode(content, final=False)
