r"""Read HTML that a model sends as the text of a JSON string: `"<p class=\"a\">…</p>"` (decision 0417)."""

import json
import re

from fermata_client.html.tags import PARAGRAPH_CLOSING_TAGS

_FIRST_TAG = re.compile(r"<([a-z][\w-]*+)", re.IGNORECASE)
_ESCAPED_ATTRIBUTE = re.compile(r'<[a-z][^<>="]*+=\\"', re.IGNORECASE)
r"""A quotation mark with a backslash in a tag. In a text it may be what the page shows: `<pre>a=\"b\"</pre>`."""


def decode_json_markup(html: str) -> str:
    """Return the HTML that a JSON string holds, also one without its outer quotation marks; else the text itself.

    Quotation marks around words are a quotation: only markup with escapes, or a block of a page, is taken out of them.
    """
    text = html.strip()
    is_quoted = len(text) > 1 and text[0] == text[-1] == '"'
    first_tag = _FIRST_TAG.match(text, int(is_quoted))
    if first_tag is None or not text.rstrip('"').endswith(">"):
        return html
    is_escaped = bool(_ESCAPED_ATTRIBUTE.search(text))
    if not is_escaped and not (is_quoted and first_tag[1].lower() in PARAGRAPH_CLOSING_TAGS):
        return html
    try:
        decoded = json.loads(text if is_quoted else f'"{text}"', strict=False)
    except ValueError:
        return html
    return str(decoded)
