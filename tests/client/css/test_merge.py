"""Rules put into a sheet: merged where they are, added where they are not, everything else byte for byte."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fermata_client.css.insertion import SheetFormat
from fermata_client.css.merge import RuleCounts, StyleSheetEditor
from fermata_client.css.parser import find_rule, parse_css, rule_key
from fermata_client.html.edit_error import EditError


def put(sheet: str, css: str, *, keep_existing: bool = False) -> tuple[str, RuleCounts]:
    sheets = StyleSheetEditor([sheet.encode()], [SheetFormat()], keep_existing=keep_existing)
    counts = sheets.put_rules(css)
    return sheets.sheets[0].decode(), counts


def test_a_known_selector_gets_new_values_in_place_and_new_properties_behind() -> None:
    sheet = "/* cards */\n.card  >  h3 {\n    color:red; /* brand */\n    margin: 0\n}\n"
    assert put(sheet, ".card > h3 { color: blue; padding: 1rem; }") == (
        "/* cards */\n.card  >  h3 {\n    color:blue; /* brand */\n    margin: 0;\n    padding: 1rem;\n}\n",
        RuleCounts(created=0, updated=1),
    )


def test_fallback_values_are_matched_from_the_last() -> None:
    once, _ = put(".a { height: 1vh }\n", ".a { height: 2vh; height: 2dvh }")
    assert once == ".a { height: 2vh; height: 2dvh }\n"
    assert put(once, ".a { height: 3vh; height: 3dvh }")[0] == ".a { height: 3vh; height: 3dvh }\n"
    assert put(once, ".a { height: 4dvh }")[0] == ".a { height: 2vh; height: 4dvh }\n"


def test_an_unknown_selector_is_added_behind_everything_with_the_spacing_of_the_sheet() -> None:
    sheet = "\n.a {\n  b: c;\n}\n\n.d {\n  e: f;\n}\n"
    assert put(sheet, ".new {\n      x: y;\n}\n.other { z: 0 }") == (
        f"{sheet[:-1]}\n\n.new {{\n  x: y;\n}}\n\n.other {{ z: 0 }}\n",
        RuleCounts(created=2),
    )


def test_the_same_selector_under_a_condition_is_another_rule() -> None:
    sheet = ".a { b: c }\n@media (min-width: 40rem) {\n  .a { b: d }\n}\n"
    after, counts = put(sheet, "@media (min-width:40rem) { .a { b: e } .n { o: p } }")
    assert after == ".a { b: c }\n@media (min-width: 40rem) {\n  .a { b: e }\n  .n { o: p }\n}\n"
    assert counts == RuleCounts(created=1, updated=1)


def test_an_unknown_condition_comes_with_its_rules() -> None:
    assert put(".a { b: c }\n", "@media print { .a { b: d } .e { f: g } }") == (
        ".a { b: c }\n@media print { .a { b: d } .e { f: g } }\n",
        RuleCounts(created=2),
    )


def test_a_plain_rule_never_lands_behind_the_condition_that_changes_it() -> None:
    sheet = "@media print {\n  .a { b: c }\n}\n"
    after, _ = put(sheet, ".a { b: d }")
    assert after == ".a { b: d }\n@media print {\n  .a { b: c }\n}\n"


def test_a_condition_never_lands_before_the_plain_rule_it_changes() -> None:
    sheet = "@media print {\n  .x { y: z }\n}\n.a { b: c }\n"
    after, _ = put(sheet, "@media print { .a { b: d } }")
    assert after == sheet + "@media print {\n  .a { b: d }\n}\n"


def test_of_two_equal_rules_the_later_one_is_changed() -> None:
    assert put(".a { b: c }\n.a { b: d }\n", ".a { b: e }")[0] == ".a { b: c }\n.a { b: e }\n"


def test_keyframes_are_replaced_whole() -> None:
    sheet = "@keyframes spin {\n  to { rotate: 1turn }\n}\n.a { b: c }\n"
    assert put(sheet, "@keyframes spin { to { rotate: 2turn } }") == (
        "@keyframes spin { to { rotate: 2turn } }\n.a { b: c }\n",
        RuleCounts(updated=1),
    )


def test_font_faces_stand_beside_each_other() -> None:
    face = '@font-face { font-family: "A"; src: url(a.woff2) }'
    assert put(face + "\n", face.replace('"A"', '"B"'))[1] == RuleCounts(created=1)


def test_imports_go_to_the_top_and_come_once() -> None:
    sheet, counts = put(".a { b: c }\n", '@import "x.css";')
    assert (sheet.strip(), counts.created) == ('@import "x.css";\n.a { b: c }', 1)
    assert put(sheet, '@import "x.css";') == (sheet, RuleCounts(kept=1))


def test_nested_rules_are_merged_in_their_rule() -> None:
    sheet = ".a {\n  b: c;\n  &:hover { d: e }\n}\n"
    after, counts = put(sheet, ".a { &:hover { d: f } &:focus { g: h } }")
    assert after == ".a {\n  b: c;\n  &:hover { d: f }\n  &:focus { g: h }\n}\n"
    assert counts == RuleCounts(created=1, updated=2)


def test_a_nested_rule_never_follows_a_declaration_without_its_semicolon() -> None:
    assert put(".a { b: c }\n", ".a { &:hover { d: e } }")[0] == ".a { b: c;\n  &:hover { d: e }\n}\n"
    assert put(".a { b: c /* x */ }\n", ".a { f: g; &:hover { d: e } }")[0] == (
        ".a { b: c; f: g; /* x */\n  &:hover { d: e }\n}\n"
    )


def test_rules_that_depend_on_each_other_without_end_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fermata_client.css.merge.MAX_PARSED_BYTES", 2_000)
    sheet = "".join(f".x{number} {{ top: 0 }}\n" for number in range(50))
    assert put(sheet, ".x1 { top: 1px }" * 2)[1] == RuleCounts(updated=2)
    with pytest.raises(EditError, match="in several calls"):
        put(sheet, ".x1 { top: 1px }" * 4)


@pytest.mark.parametrize("opening", ["@media (a) {", ".a {", "@supports (a: b) {"])
def test_rules_that_lie_too_deep_in_each_other_are_refused(opening: str) -> None:
    assert parse_css((opening * 50 + "}" * 50).encode())
    with pytest.raises(EditError, match="more than 50 deep"):
        put("", opening * 3_000 + "}" * 3_000)


def test_what_takes_too_long_to_parse_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fermata_client.html.syntax_tree.MAX_PARSE_SECONDS", -1.0)
    with pytest.raises(EditError, match="no CSS, so that it cannot be read"):
        parse_css(b"a:" * 3_000)


def test_syntax_the_grammar_does_not_know_is_carried_along() -> None:
    css = "@container card (width > 30rem) { .a { b: c } }\n@page :first { margin: 1in }"
    assert put("", css)[0].strip() == css
    assert put(".a { b: c }\n", ".a { b: d;; e: f }") == (".a { b: c }\n.a { b: d;; e: f }\n", RuleCounts(updated=1))


def test_a_sheet_on_one_line_stays_on_it_where_it_can() -> None:
    assert put(".a{b:c}.d{e:f}", ".a{b:x;g:h}")[0] == ".a{b:x;g: h;}.d{e:f}"


def test_existing_rules_can_be_kept_from_change() -> None:
    assert put(".a { b: c }\n", ".a { b: d } .n { o: p }", keep_existing=True) == (
        ".a { b: c }\n.n { o: p }\n",
        RuleCounts(created=1, kept=1),
    )


@pytest.mark.parametrize(
    ("css", "reason"),
    [
        ("color: red", "no CSS rule"),
        ("hello", "no CSS rule"),
        (".a { b: c", "A } is missing"),
        (".a { b: c } }", "a } too many"),
        (".a { b: (c } )", "a } too many"),
        (".a { content: 'x }", "quoted text"),
        (".a { b: c } /* open", r"A \*/ is missing"),
        (".a { b: c } </style><script>", "</style>"),
    ],
)
def test_css_that_would_break_the_sheet_is_refused(css: str, reason: str) -> None:
    with pytest.raises(EditError, match=reason):
        put(".x { y: z }", css)


def test_braces_in_texts_and_comments_do_not_count() -> None:
    assert put("", ".a::after { content: '}{' } /* { */ .b { c: d }")[1].created == 2


def test_selectors_are_compared_without_white_space_and_comments() -> None:
    assert rule_key("a >b ,\n c") == rule_key("a > b,c")
    assert rule_key("a /* x */ b") == rule_key("a b")
    assert rule_key("@media (min-width:  40rem )") == rule_key("@media (min-width:40rem)")
    assert rule_key("a:hover") != rule_key("a :hover")
    assert rule_key('[x="a  b"]') != rule_key('[x="a b"]')


NAMES = st.sampled_from((".a", ".b", "h1", "a:hover"))
DECLARATIONS = st.lists(
    st.tuples(st.sampled_from(("color", "top", "--x")), st.sampled_from(("red", "0", "1px"))), max_size=3
)


@st.composite
def sheets(draw: st.DrawFn) -> str:
    rules = []
    for name, declarations, condition in draw(
        st.lists(st.tuples(NAMES, DECLARATIONS, st.booleans()), min_size=1, max_size=5)
    ):
        body = draw(st.sampled_from((" ", "\n  "))).join(f"{prop}: {value};" for prop, value in declarations)
        rule = f"{name} {{ {body} }}"
        rules.append(f"@media print {{\n  {rule}\n}}" if condition else rule)
    return draw(st.sampled_from(("\n", "\n\n"))).join(rules) + "\n"


def effective_values(sheet: str, name: str, *, printing: bool) -> dict[str, str]:
    """What applies to a selector in the end, as the cascade has it for rules of one weight."""
    values: dict[str, str] = {}
    for rule in parse_css(sheet.encode()):
        inner = rule.rules if rule.is_condition else (rule,)
        for inner_rule in inner if printing or not rule.is_condition else ():
            if inner_rule.key == name:
                values |= {declaration.name: declaration.value for declaration in inner_rule.declarations}
    return values


@given(sheets(), sheets())
def test_what_was_put_applies_and_nothing_else_changes(sheet: str, css: str) -> None:
    after, counts = put(sheet, css)
    changed_rules = {
        (rule.key, inner.key)
        for rule in parse_css(css.encode())
        for inner in (rule.rules if rule.is_condition else (rule,))
    }
    for name in (".a", ".b", "h1", "a:hover"):
        plain = effective_values(css, name, printing=False)
        assert effective_values(after, name, printing=False).items() >= plain.items()
        if name not in {key for _, key in changed_rules}:
            assert effective_values(after, name, printing=True) == effective_values(sheet, name, printing=True)
    assert counts.created + counts.updated >= 1
    assert put(after, css)[0] == after


@given(sheets(), sheets())
def test_rules_that_were_not_asked_for_keep_their_bytes(sheet: str, css: str) -> None:
    after, _ = put(sheet, css)
    changed_rules = {
        key for rule in parse_css(css.encode()) for key in (rule.key, *(inner.key for inner in rule.rules))
    }
    for rule in parse_css(sheet.encode()):
        if rule.key not in changed_rules:
            assert rule.source.decode() in after
            assert find_rule(parse_css(after.encode()), (rule.key,)) is not None
    assert re.sub(r"\s", "", sheet)[:1] in after


RULES = (
    ".a { top: 0 }",
    ".b { top: 0 }",
    "/* c */\n.c { top: 0 }",
    "@media (width > 9px) { .a { top: 1px } .d { top: 0 } }",
    "@media (width > 9px) { .e { top: 1px } }",
    "@font-face { font-family: F }",
    "@import 'x.css';",
    ".d { top: 2px }",
    ".a { color: red; &:hover { top: 0 } }",
    ".x { &:hover { left: 0 } &:focus { top: 0 } }",
    "@supports (a: b) { @media (width > 9px) { .b { top: 5px } } }",
    "@keyframes k { to { top: 1px } }",
    ".b { top: 1px; top: 2px }",
)
SHEETS = (
    "",
    ".a { left: 0 }\n",
    "\n  .b { left: 0 }\n\n  .x {}\n",
    "@media (width > 9px) { .c { top: 3px } }\n",
    ".x{}",
    ".a{top:0}.b{left:0}\n@media (width > 9px){.a{left:0}}",
    ".d { top: 0 }\n@keyframes k {}\n.x { top: 0 }\n@supports (a: b) { .b { left: 0 } }\n",
)


@given(st.sampled_from(SHEETS), st.sampled_from(("", "  ")), st.lists(st.sampled_from(RULES), min_size=1, max_size=6))
@example(SHEETS[1], "  ", [RULES[8], RULES[0]])
def test_rules_that_are_put_together_are_put_as_one_after_the_other(sheet: str, indent: str, rules: list[str]) -> None:
    def edit(*texts: str) -> list[bytes]:
        editor = StyleSheetEditor([sheet.encode()], [SheetFormat(indent.encode())])
        for text in texts:
            editor.put_rules(text)
        return editor.sheets

    assert edit("\n".join(rules)) == edit(*rules)
