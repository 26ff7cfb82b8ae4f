"""Arguments are read as far as their meaning is plain, or quoted with the place (decisions 0197 and 0207)."""

import contextlib
from collections.abc import Callable
from typing import Any

import pytest

from fermata.domain.lenient_json import MAX_JSON_MEMBERS, UnreadableJson, read_plain_json, read_strict_json
from tests.growth.measure_growth import MAX_GROWTH, measure_growth

PLAIN: dict[str, tuple[str, Any]] = {
    "a byte order mark": ('\ufeff{"a": 1}', {"a": 1}),
    "an empty object and blanks in front": ('{}\n {"a": 1}', {"a": 1}),
    "the object three times": ('{"a": 1}{"a": 1}\n{"a": 1}', {"a": 1}),
    "null behind": ('{"a": 1}null', {"a": 1}),
    "text of text of text": ('"\\"{\\\\\\"a\\\\\\": 1}\\""', {"a": 1}),
    "a fence on one line": ('```json {"a": 1}```', {"a": 1}),
    "a fence that nothing closes": ('```json\n{"a": 1}', {"a": 1}),
    "a fence inside a string": ('{"a": "```\\nx\\n```"}', {"a": "```\nx\n```"}),
    "words in front": ('Here they are: {"a": 1}', {"a": 1}),
    "words behind": ('{"a": 1}\n\nI hope this helps.', {"a": 1}),
    "marks of a template": ('<tool_call>\n{"a": 1}\n</tool_call>', {"a": 1}),
    "a mark of a template behind": ('{"a": 1}<|im_end|>', {"a": 1}),
    "marks of a template in brackets": ('[TOOL_CALLS] insertHtml[ARGS]{"a": 1}', {"a": 1}),
    "a call as code": ('insertHtml({"a": 1})', {"a": 1}),
    "apostrophes as quotation marks": ("{'a': 'it\\'s \"b\"'}", {"a": 'it\'s "b"'}),
    "constants of Python": ('{"a": True, "b": [False, None,]}', {"a": True, "b": [False, None]}),
    "constants of Python in a string": ("{'a': 'True', \"b\": \"None\"}", {"a": "True", "b": "None"}),
    "bare names": ('{a: 1, b_2: {$c: "x"}}', {"a": 1, "b_2": {"$c": "x"}}),
    "comments": ('{"a": 1, // one\n /* two */ "b": "http://x"}', {"a": 1, "b": "http://x"}),
    "an escaped apostrophe": ('{"a": "it\\\'s"}', {"a": "it's"}),
    "an escaped backslash before an apostrophe": ('{"a": "\\\\\'",}', {"a": "\\'"}),
    "unusual blanks between members": ('{\u00a0"a":\u200b 1}', {"a": 1}),
    "control characters in a string": ('{"a": "\x00\x1f\r\n\t"}', {"a": "\x00\x1f\r\n\t"}),
    "single backslashes": ('{"a": "/\\\\d+\\w\\.$/", "b": "\\n"}', {"a": "/\\d+\\w\\.$/", "b": "\n"}),
    "characters of CSS and line ends": ('{"a": "b{content:\'\\2014\'}\\nc{}"}', {"a": "b{content:'\\2014'}\nc{}"}),
    "curly quotation marks": ("{“a”: “<b class='c'>”, ”d“: 1}", {"a": "<b class='c'>", "d": 1}),
    "curly quotation marks in a string": ("{'a': '“b”'}", {"a": "“b”"}),
    "a template string": ('{"a": `<p class="b">\nc \\`d\\`</p>`}', {"a": '<p class="b">\nc `d`</p>'}),
    "three quotation marks": ('{"a": """<p class="b">\nc</p>"""}', {"a": '<p class="b">\nc</p>'}),
    "two pairs of braces": ('{{"a": {"b": 1}}}', {"a": {"b": 1}}),
    "a blank text as text": ('" "', {}),
    "nothing in JavaScript": ('{"a": undefined}', {"a": None}),
    "an escaped pair of surrogates": ('{"a": "\\ud83d\\ude00"}', {"a": "😀"}),
    "half a pair of surrogates": ('{"a": "\\ud83d", "\\ude00": 1}', {"a": "\ufffd", "\ufffd": 1}),
    "half a pair of surrogates in text of text": ('"{\\"a\\": \\"\\\\ud83d\\"}"', {"a": "\ufffd"}),
}


@pytest.mark.parametrize(("text", "value"), PLAIN.values(), ids=PLAIN)
def test_a_plain_meaning_is_read(text: str, value: Any) -> None:
    assert read_plain_json(text) == value


UNREADABLE: dict[str, tuple[str, str]] = {
    "cut off in a string": ('{"a": "b', "character 7 of 8"),
    "cut off between members": ('{"a": 1,', "character 9 of 8"),
    "cut off with apostrophes": ("{'a': 'b", "character 2 of 8"),
    "a bracket too early": ('{"a": 1}, "b": 2}', "character 9 of 17"),
    "an unescaped quotation mark": ('{"a": "x"} y"}', "character 12 of 14"),
    "an unescaped apostrophe": ("{'a': 'it's'}", "character 2 of 13"),
    "two objects": ('{"a": 1} {"b": 2}', "character 10 of 17"),
    "a number that JSON does not have": ('{"a": NaN}', "character 7 of 10"),
    "a number that is too large": ('{"a": 1e999}', "character 7 of 12"),
    "single backslashes of which one may be an escape": ('{"a": "\\bx\\d"}', "character 11 of 14"),
    "a line end beside a single backslash": ('{"a": "\\d\\n"}', "character 8 of 13"),
    "an escape of JavaScript": ('{"a": "\\x41"}', "character 8 of 13"),
    "half an escape": ('{"a": "\\u00"}', "character 9 of 13"),
    "a template with a value": ('{"a": `${x}`}', "character 7 of 13"),
    "a curly quotation mark that nothing closes": ('{"a": “x}', "character 7 of 9"),
}


@pytest.mark.parametrize(("text", "place"), UNREADABLE.values(), ids=UNREADABLE)
def test_a_text_without_a_plain_meaning_is_quoted_with_the_place(text: str, place: str) -> None:
    with pytest.raises(UnreadableJson) as caught:
        read_plain_json(text)
    assert place in str(caught.value)
    assert str(caught.value).endswith(f"They were: {text}")


LONG: dict[str, Callable[[int], str]] = {
    "objects": lambda n: "{}" * n,
    "objects and words": lambda n: "{}a" * n,
    "the same object": lambda n: '{"a":1}' * n,
    "blanks in a fence": lambda n: "```\n" + " " * n,
    "blanks and no fence": lambda n: "```" + " " * n + "x",
    "escaped quotation marks": lambda n: '{"a": "' + '\\"' * n + "\\",
    "escaped apostrophes": lambda n: "{'a': '" + "\\'" * n + "\\",
    "escaped template quotes": lambda n: '{"a": ' + "`\\" * n,
    "escaped curly quotes": lambda n: '{"a": ' + "“\\”" * n,
    "quotation marks in threes": lambda n: '{"a": ' + '"""\\"' * n,
    "single backslashes": lambda n: '{"a": "' + "\\d\\b" * n,
    "comments": lambda n: "{" + "/*" * n,
    "commas": lambda n: "{" + ", " * n,
    "words": lambda n: "{" + "a " * n,
    "marks in brackets": lambda n: "[A_B]a " * n,
    "one word": lambda n: "{" + "a" * n,
    "brackets": lambda n: "{}" + "}" * n + "x",
    "quotation marks": lambda n: "\"'" * n,
    "backslashes": lambda n: "\\" * n,
}


@pytest.mark.parametrize("make_text", LONG.values(), ids=LONG)
def test_a_text_twice_as_long_takes_twice_the_time(make_text: Callable[[int], str]) -> None:
    def prepare(size: int) -> Callable[[], object]:
        text = make_text(size)
        return lambda: try_to_read(text)

    assert measure_growth(prepare, 3_000, 24_000) <= MAX_GROWTH


def try_to_read(text: str) -> None:
    with contextlib.suppress(UnreadableJson):
        read_plain_json(text)


@pytest.mark.parametrize("read", [read_plain_json, read_strict_json])
def test_a_value_with_more_members_than_any_that_is_meant_is_refused(read: Callable[[str], Any]) -> None:
    with pytest.raises(UnreadableJson, match="too many members"):
        read("[" + "{}," * MAX_JSON_MEMBERS + "{}]")
