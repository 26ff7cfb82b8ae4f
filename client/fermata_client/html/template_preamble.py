"""Find what a template engine reads at the start of a file, before which nothing may be inserted (decision 0192)."""

import re

UTF8_BOM = b"\xef\xbb\xbf"

_FRONT_MATTER = re.compile(rb"(---|\+\+\+|;;;)[a-z]*[ \t]*\r?\n(?:.*?\r?\n)??\1[ \t]*(?:\r?\n|\Z)", re.DOTALL)
_SPACE_OR_COMMENT = re.compile(rb"\s+|<!--(?!#).*?-->", re.DOTALL)
_STATEMENT = re.compile(
    rb"<!doctype[^>]*>"
    rb"|<\?.*?(?:\?>|\Z)"
    rb"|<%.*?%>"
    rb"|<!--#.*?-->"
    rb"|\{#.*?#\}"
    rb"|\{%[-+~]?\s*comment\b.*?endcomment\s*[-+~]?%\}"
    rb"|\{%[-+~]?\s*(?:extends|load|import|from|use|layout|set|assign|include|render|liquid|doctype)\b.*?%\}"
    rb"|\{\{~?!--.*?--~?\}\}|\{\{~?[!><].*?\}\}"
    rb"|\{\{~?#?\s*-?\s*(?:template|define|extends?|layout|partial|include|import)\b.*?\}\}"
    rb"|@php\b.*?@endphp\b|@\{(?:[^{}]|\{[^{}]*\})*\}"
    rb"|@(?:extends|include|props|use|inject|page|model|using|inherits|layout|attribute|implements|namespace"
    rb"|addTagHelper|removeTagHelper|tagHelperPrefix)\b[^\n]*",
    re.DOTALL | re.IGNORECASE,
)
_EXTENDS = re.compile(rb"\{%[-+~]?\s*(?:extends|layout)\b|@extends\b|\{\{~?#?\s*extends?\b|\{\{!<", re.IGNORECASE)
_BLOCK = re.compile(
    rb"\{%[-+~]?\s*block\s+(?P<name>[\w.-]+)[^%]*%\}(?P<content>(?:(?!\{%[-+~]?\s*(?:end)?block\b).)*)"
    rb"(?=\{%[-+~]?\s*endblock\b)",
    re.DOTALL,
)
_SERVER_CODE_BLOCK = re.compile(rb"<\?.*?(?:\?>|\Z)|<%.*?(?:%>|\Z)", re.DOTALL)
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


def head_block_end(source: bytes, *, for_script: bool) -> int | None:
    """Return the end of the content of the block that such a file has for styles or scripts; None if it has none."""
    blocks = [(match["name"].lower(), match.end()) for match in _BLOCK.finditer(source)]
    for word in _SCRIPT_BLOCK_WORDS if for_script else _STYLE_BLOCK_WORDS:
        for name, end in blocks:
            if word in name:
                return end
    return None
