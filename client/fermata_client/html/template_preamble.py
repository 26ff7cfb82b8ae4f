"""Find what a template engine reads at the start of a file, before which nothing may be inserted (decision 0192)."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

UTF8_BOM = b"\xef\xbb\xbf"

_FRONT_MATTER = re.compile(
    rb"(---|\+\+\+|;;;)[a-z]*[ \t]*\r?\n(?:.*?\r?\n)??\1[ \t]*(?:\r?\n|\Z)"
    rb"|\{[ \t]*\r?\n[ \t]*\"[^\"\n]*\"[ \t]*:.*?\r?\n\}[ \t]*(?:\r?\n|\Z)",
    re.DOTALL,
)
_SPACE_OR_COMMENT = re.compile(rb"\s+|<!--(?!#).*?-->", re.DOTALL)
_STATEMENT = re.compile(
    rb"<!doctype[^>]*>"
    rb"|<\?.*?(?:\?>|\Z)"
    rb"|<%(?:inherit|namespace|page|include)\b[^>]*/>"
    rb"|<%.*?%>"
    rb"|<#(?:ftl|import|include|assign|global|setting)\b[^>]*>"
    rb"|<cf(?:set|include|import|param|setting)\b[^>]*>"
    rb"|#(?:parse|include|set)[ \t]*\([^\n]*"
    rb"|<!--#.*?-->"
    rb"|\{#.*?#\}"
    rb"|\{%[-+~]?\s*comment\b.*?endcomment\s*[-+~]?%\}"
    rb"|\{%[-+~]?\s*(?:extends|load|import|from|use|layout|set|assign|include|render|liquid|doctype)\b.*?%\}"
    rb"|\{\{~?!--.*?--~?\}\}|\{\{~?[!><].*?\}\}"
    rb"|\{\{~?#?\s*+(?:-\s*+)?(?:template|define|extends?|layout|partial|include|import)\b.*?\}\}"
    rb"|@php\b.*?@endphp\b|@\{(?:[^{}]|\{[^{}]*\})*\}"
    rb"|@(?:extends|include|props|use|inject|page|model|using|inherits|layout|attribute|implements|namespace"
    rb"|addTagHelper|removeTagHelper|tagHelperPrefix)\b[^\n]*",
    re.DOTALL | re.IGNORECASE,
)
_EXTENDS = re.compile(rb"\{%[-+~]?\s*(?:extends|layout)\b|@extends\b|\{\{~?#?\s*extends?\b|\{\{!<", re.IGNORECASE)
_BLOCK_TAG = re.compile(rb"\{%[-+~]?\s*(?:block\s++(?P<name>[\w.-]++)[^%]*|(?P<end>endblock)\b[^%]*)%\}")
_REQUIRES_BLOCKS = re.compile(rb"\{%[-+~]?\s*extends\b")
_SERVER_CODE_BLOCK = re.compile(
    rb"<%(?:inherit|namespace|page|include|def|block)\b[^>]*>|<\?.*?(?:\?>|\Z)|<%.*?(?:%>|\Z)", re.DOTALL
)
TEMPLATE_CODE = (
    rb"(?:<\?(?:(?!<\?).)*?\?>|<%(?:(?!<%).)*?%>"
    rb"|\{%[-+~]?\s*comment\b(?:(?!\{%[-+~]?\s*(?:end)?comment\b).)*+\{%[-+~]?\s*endcomment\s*[-+~]?%\}"
    rb"|\{%(?:(?!\{%|%\}).)*+%\}"
    rb"|\{#(?:(?!\{#|#\}).)*+#\}"
    rb"|\{\{~?!--(?:(?!\{\{~?!--|--~?\}\}).)*+--~?\}\}"
    rb"|\{\{(?:(?!\{\{|\}\}|<[A-Za-z/!]).)*+\}\})"
)
"""Code of a server or a template engine, at any place of a file. Quotes and angle brackets in it are not markup."""
_STYLE_BLOCK_WORDS = (b"style", b"css", b"head")
_SCRIPT_BLOCK_WORDS = (b"script", b"js", b"head")
"""Words in the names of blocks that templates keep for the head, the best first."""
_CONTENT_BLOCK_WORDS = (b"content", b"body", b"main")


def preamble_end(source: bytes) -> int:
    """Return the end of byte order mark, front matter, template statements and doctype at the start of a file."""
    end = len(UTF8_BOM) if source.startswith(UTF8_BOM) else 0
    front_matter = _FRONT_MATTER.match(source, end)
    position = end = front_matter.end() if front_matter else end
    while True:
        if gap := _SPACE_OR_COMMENT.match(source, position):
            position = gap.end()
        elif statement := _STATEMENT.match(source, position):
            position = end = statement.end()
        else:
            return end


def is_filled_into_template(source: bytes) -> bool:
    """Return whether the file only fills blocks of another template, so that what is outside of them is not shown."""
    return _EXTENDS.search(source[: preamble_end(source)]) is not None


def find_server_code(source: bytes) -> frozenset[bytes]:
    """Return the code in a file that a server runs, such as PHP's."""
    return frozenset(_SERVER_CODE_BLOCK.findall(source))


@dataclass(frozen=True)
class _Block:
    name: bytes
    start: int
    end: int
    """Where its content begins and ends."""


def head_block_end(source: bytes, *, for_script: bool) -> int | None:
    """Return the end of the content of the block that such a file has for styles or scripts; None if it has none."""
    block = _find_block(_find_blocks(source), _SCRIPT_BLOCK_WORDS if for_script else _STYLE_BLOCK_WORDS)
    return None if block is None else block.end


def content_block_start(source: bytes, first_element_start: int | None) -> int | None:
    """Return where the content begins that such a file puts into its template; None if it puts nothing there.

    Args:
        first_element_start: where the file's first element begins; None if it has none.
    """
    blocks = _find_blocks(source)
    around = [block for block in blocks if block.start <= (first_element_start or 0) < block.end]
    block = _find_block(blocks, _CONTENT_BLOCK_WORDS) or next(iter(around), None)
    if block is not None:
        first = first_element_start or 0
        return block.start if source[block.start : first].strip() else max(block.start, first)
    return None if _REQUIRES_BLOCKS.search(source) else first_element_start


def _find_block(blocks: Sequence[_Block], words: Sequence[bytes]) -> _Block | None:
    return next((block for word in words for block in blocks if word in block.name), None)


def _find_blocks(source: bytes) -> list[_Block]:
    """Return the blocks of a file, those within others first."""
    blocks: list[_Block] = []
    open_tags: list[re.Match[bytes]] = []
    for tag in _BLOCK_TAG.finditer(source):
        if not tag["end"]:
            open_tags.append(tag)
        elif open_tags:
            start = open_tags.pop()
            blocks.append(_Block(start["name"].lower(), start.end(), tag.start()))
    return blocks
