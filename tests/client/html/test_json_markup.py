"""HTML that a model sends as a JSON string is read, and a quotation stays one."""

import json

import pytest

from fermata_client.html.json_markup import decode_json_markup

MARKUP = '<section class="a">\n  <p>Bread</p>\n</section>'


@pytest.mark.parametrize(
    "sent",
    [json.dumps(MARKUP), f" {json.dumps(MARKUP)}\n", json.dumps(MARKUP)[1:-1], json.dumps(MARKUP, ensure_ascii=True)],
)
def test_markup_in_a_json_string_is_read(sent: str) -> None:
    assert decode_json_markup(sent) == MARKUP


def test_a_block_in_quotation_marks_is_markup_and_a_word_in_them_a_quotation() -> None:
    assert decode_json_markup('"<p>Hello <b>x</b></p>"') == "<p>Hello <b>x</b></p>"
    for quotation in ('"<em>Great bread!</em>"', '"Great <b>bread</b>"', '"Hello"', '"', '""', "", "Hello"):
        assert decode_json_markup(quotation) == quotation


@pytest.mark.parametrize(
    "markup",
    [
        MARKUP,
        '<p>C:\\new and \\" stay</p>',
        '<p title="a">x =\\"y\\"</p>',
        '<p class=\\"a\\">\\q</p>',
        '"<p>a</p>" and "<p>b</p>"',
        '<p class=\\"a',
        '<pre>echo a=\\"b\\"</pre>',
    ],
)
def test_other_markup_stays_as_it_is(markup: str) -> None:
    assert decode_json_markup(markup) == markup
