"""Check the demo model's response to a prompt and a page."""

import re

import pytest

from fermata.domain.tools import ToolOutput, ToolSpec
from fermata.drivers.transport.authenticated_endpoint import AuthenticatedEndpoint
from fermata.drivers.transport.http_connection import HttpConnection
from local.demo_model.rules.html_page import HtmlNode
from tests.unit.demo_model.editor_tab import SPECS, EditorTab, parse_fragment, run_demo_turn

SHOP = """
<html><body>
  <header class="top"><h1>Corner Shop</h1></header>
  <main>
    <section class="part hero" id="hero"><div class="wrap">
      <h2>Fresh every day</h2><a class="btn btn-main">Order</a></div></section>
    <section class="part goods" id="goods"><div class="wrap"><h2>Our goods</h2>
      <ul class="tiles"><li class="tile"><h3>Rye</h3></li><li class="tile"><h3>Spelt</h3></li></ul></div></section>
    <section class="part voices" id="testimonials"><div class="wrap">
      <h2>What people say</h2><p>Good.</p></div></section>
  </main>
  <footer><p>Open daily</p></footer>
</body></html>
"""
SHOP_CSS = ":root { --brand: #a40; --space-m: 1rem; --radius: 4px; } .part { padding: 2rem; }"
BARE = "<html><body><h1>Notes</h1><p>Some words about <em>tea</em>.</p><footer>Bye</footer></body></html>"


@pytest.fixture
def shop() -> EditorTab:
    return EditorTab(SHOP, SHOP_CSS)


@pytest.fixture
def bare() -> EditorTab:
    return EditorTab(BARE)


def part(tab: EditorTab, name: str) -> HtmlNode:
    return next(node for node in tab.root.iter_descendants() if node.attributes.get("id") == name or node.tag == name)


def section_ids(tab: EditorTab) -> list[str]:
    return [node.attributes.get("id", "") for node in tab.root.find_all("section")]


def test_two_prompts_on_two_pages_give_the_two_edits_asked_for(
    shop: EditorTab, bare: EditorTab, line: HttpConnection, endpoint: AuthenticatedEndpoint
) -> None:
    before = {name: part(shop, name).text for name in ("header", "hero", "goods", "testimonials", "footer")}
    run_demo_turn("Add a pricing section", shop, line, endpoint)
    run_demo_turn('Change the heading to "Tea notes"', bare, line, endpoint)
    assert section_ids(shop) == ["hero", "goods", "testimonials", "pricing"]
    assert {name: part(shop, name).text for name in before} == before
    assert [child.tag for child in part(bare, "body").children] == ["h1", "p", "footer"]
    assert part(bare, "h1").text == "Tea notes"
    assert part(bare, "footer").text == "Bye"


def test_a_new_section_takes_four_rounds_and_edits_in_one(
    shop: EditorTab, line: HttpConnection, endpoint: AuthenticatedEndpoint
) -> None:
    said = run_demo_turn("Add a pricing section", shop, line, endpoint)
    assert said.tool_names == [["list_documents", "list_tokens"], ["read_document"], ["insertHtml", "applyCss"]]
    assert len(said.texts) == 4
    assert "not an AI" in said.texts[0]
    assert "not an AI" in said.texts[-1]


def test_a_new_section_wears_the_pages_own_clothes(
    shop: EditorTab, line: HttpConnection, endpoint: AuthenticatedEndpoint
) -> None:
    run_demo_turn("Add a pricing section", shop, line, endpoint)
    section = part(shop, "pricing")
    assert section.classes == ["part", "pricing"]
    assert section.children[0].classes == ["wrap"]
    assert {tuple(card.classes) for card in section.find_all("li")} == {("tile",)}
    assert {tuple(button.classes) for button in section.find_all("a")} == {("btn", "btn-main")}
    assert [heading.text for heading in section.find_all("h3")] == ["Rye", "Spelt"]
    assert "var(--brand)" in shop.css


def test_on_a_plain_page_a_new_section_brings_its_own(
    bare: EditorTab, line: HttpConnection, endpoint: AuthenticatedEndpoint
) -> None:
    run_demo_turn("Please add an FAQ section", bare, line, endpoint)
    body = part(bare, "body")
    assert [child.tag for child in body.children] == ["h1", "p", "section", "footer"]
    assert part(bare, "faq").find_all("details")
    for name in re.findall(r"\.(faq[\w-]*)", bare.css):
        assert any(name in node.classes for node in part(bare, "faq").iter_descendants()) or name == "faq"


@pytest.mark.parametrize(
    ("place", "order"),
    [
        ("after the hero", ["hero", "contact", "goods", "testimonials"]),
        ("before the testimonials section", ["hero", "goods", "contact", "testimonials"]),
        ("at the top", ["contact", "hero", "goods", "testimonials"]),
        ("at the end", ["hero", "goods", "testimonials", "contact"]),
    ],
)
def test_a_section_goes_where_the_prompt_says(
    place: str, order: list[str], shop: EditorTab, line: HttpConnection, endpoint: AuthenticatedEndpoint
) -> None:
    run_demo_turn(f"Add a contact section {place}", shop, line, endpoint)
    assert section_ids(shop) == order


def test_the_words_of_a_section_come_from_the_prompt(
    bare: EditorTab, line: HttpConnection, endpoint: AuthenticatedEndpoint
) -> None:
    run_demo_turn(
        'Add a pricing section called "What it costs" with "Cup for €3.50" and "Pot €7"', bare, line, endpoint
    )
    section = part(bare, "section")
    assert section.find_all("h2")[0].text == "What it costs"
    assert [heading.text for heading in section.find_all("h3")] == ["Cup", "Pot"]
    assert [node.text for node in section.iter_descendants() if "pricing__price" in node.classes] == ["€3.50", "€7"]


def test_markup_in_a_prompt_stays_text(bare: EditorTab, line: HttpConnection, endpoint: AuthenticatedEndpoint) -> None:
    run_demo_turn('Change the heading to "<b>Loud</b>"', bare, line, endpoint)
    assert part(bare, "h1").children == []


def test_a_name_that_is_taken_gets_a_number(
    shop: EditorTab, line: HttpConnection, endpoint: AuthenticatedEndpoint
) -> None:
    run_demo_turn("Add a hero section", shop, line, endpoint)
    assert "hero-2" in section_ids(shop)


@pytest.mark.parametrize("name", ["testimonials", "What people say", "goods", "hero"])
def test_a_section_is_removed_by_any_of_its_names(
    name: str, shop: EditorTab, line: HttpConnection, endpoint: AuthenticatedEndpoint
) -> None:
    said = run_demo_turn(f"Remove the {name} section", shop, line, endpoint)
    assert said.tool_names[-1] == ["deleteNode"]
    assert len(section_ids(shop)) == 2


def test_a_text_is_replaced_in_its_place(
    shop: EditorTab, line: HttpConnection, endpoint: AuthenticatedEndpoint
) -> None:
    run_demo_turn('Replace "Open daily" with "Open on weekdays"', shop, line, endpoint)
    assert part(shop, "footer").text == "Open on weekdays"


def test_the_heading_of_one_section_can_be_named(
    shop: EditorTab, line: HttpConnection, endpoint: AuthenticatedEndpoint
) -> None:
    run_demo_turn('Change the heading of the goods section to "Breads"', shop, line, endpoint)
    assert part(shop, "goods").find_all("h2")[0].text == "Breads"
    assert part(shop, "hero").find_all("h2")[0].text == "Fresh every day"


@pytest.mark.parametrize(
    ("prompt", "css"),
    [
        ("Change the colour of the buttons to dark green", ".btn { background: darkgreen; }"),
        ("make the headings blue", "h1, h2, h3 { color: blue; }"),
        ("Set the background of the footer to #222", "footer { background: #222; }"),
        ("Make the brand colour teal", ":root { --brand: teal; }"),
        ("Change the colour of the hero to white", "#hero { color: white; }"),
    ],
)
def test_a_colour_is_set_where_it_was_asked_for(
    prompt: str, css: str, shop: EditorTab, line: HttpConnection, endpoint: AuthenticatedEndpoint
) -> None:
    said = run_demo_turn(prompt, shop, line, endpoint)
    assert said.tool_names[-1] == ["applyCss"]
    assert " ".join(said.rounds[-1][0].input["css"].split()) == css


def test_what_is_not_there_is_said_with_what_is(
    shop: EditorTab, line: HttpConnection, endpoint: AuthenticatedEndpoint
) -> None:
    said = run_demo_turn("Remove the careers section", shop, line, endpoint)
    assert "careers" in said.texts[-1]
    assert "Our goods" in said.texts[-1]
    assert "deleteNode" not in str(said.tool_names)


def test_a_prompt_beyond_the_rules_is_answered_with_what_it_can_do(
    shop: EditorTab, line: HttpConnection, endpoint: AuthenticatedEndpoint
) -> None:
    said = run_demo_turn("Make it pop", shop, line, endpoint)
    assert said.rounds == []
    assert "I can add a section" in said.texts[0]


def test_without_tools_it_only_talks(shop: EditorTab, line: HttpConnection, endpoint: AuthenticatedEndpoint) -> None:
    for tools in ({"tools": ()}, {"tools": SPECS, "call_tools": False}):
        said = run_demo_turn("Add a pricing section", shop, line, endpoint, **tools)
        assert said.rounds == []
        assert "not an AI" in said.texts[0]


def test_without_leave_to_write_it_says_what_is_missing(
    shop: EditorTab, line: HttpConnection, endpoint: AuthenticatedEndpoint
) -> None:
    said = run_demo_turn("Add a pricing section", shop, line, endpoint, tools=SPECS[:3])
    assert "insertHtml" in said.texts[-1]


def test_a_long_page_is_read_to_its_end(line: HttpConnection, endpoint: AuthenticatedEndpoint) -> None:
    tab = EditorTab(SHOP, SHOP_CSS, part_size=400)
    said = run_demo_turn("Remove the testimonials section", tab, line, endpoint)
    reads = [call.input.get("part") for calls in said.rounds for call in calls if call.tool_name == "read_document"]
    assert reads == [None, *range(2, len(reads) + 1)]
    assert len(section_ids(tab)) == 2


def test_a_tool_that_fails_is_reported(shop: EditorTab, line: HttpConnection, endpoint: AuthenticatedEndpoint) -> None:
    shop.broken = {"insertHtml": "The page is locked."}
    assert "The page is locked." in run_demo_turn("Add a pricing section", shop, line, endpoint).texts[-1]
    shop.broken = {"read_document": "No page is open."}
    assert "No page is open." in run_demo_turn("Add a pricing section", shop, line, endpoint).texts[-1]


def test_the_context_beside_a_prompt_is_not_taken_for_it(
    shop: EditorTab, line: HttpConnection, endpoint: AuthenticatedEndpoint
) -> None:
    said = run_demo_turn("Remove the hero section", shop, line, endpoint, volatile="Add a pricing section")
    assert said.tool_names[-1] == ["deleteNode"]


class NewerTab(EditorTab):
    """An editor with the tool names of later releases, whose CSS tool wants to know what to do with the CSS."""

    def _site_read_document(self) -> ToolOutput:
        return self._read_document()

    def _site_apply_css(self, operation: str, css: str) -> ToolOutput:
        assert operation == "merge"
        return self._applyCss(css)


def test_newer_editors_are_spoken_to_in_their_own_names(line: HttpConnection, endpoint: AuthenticatedEndpoint) -> None:
    schema = {"type": "object", "required": ["operation"]}
    names = ("site_read_document", "site_apply_css")
    tools = tuple(ToolSpec(name=name, description=name, input_schema=schema) for name in names)
    said = run_demo_turn("Make the headings blue", NewerTab(SHOP, SHOP_CSS), line, endpoint, tools=tools)
    assert said.tool_names == [["site_read_document"], ["site_apply_css"]]


def test_every_inserted_element_is_closed(
    shop: EditorTab, line: HttpConnection, endpoint: AuthenticatedEndpoint
) -> None:
    for topic in ("pricing", "FAQ", "testimonials", "opening hours", "newsletter", "contact", "team"):
        html = run_demo_turn(f"Add a {topic} section", shop, line, endpoint).rounds[-1][0].input["html"]
        assert len(re.findall(r"<(?!input|/)\w+", html)) == len(re.findall(r"</\w+>", html)), topic
        assert len(parse_fragment(html)) == 1


def test_a_fragment_gets_a_section_where_one_may_be(line: HttpConnection, endpoint: AuthenticatedEndpoint) -> None:
    tab = EditorTab("<ul><li>x</li></ul><p>Hi</p><div><h2>Us</h2></div>")
    run_demo_turn("Add a pricing section", tab, line, endpoint)
    (section,) = tab.root.find_all("section")
    assert section.parent is not None
    assert section.parent.tag == "div"
    said = run_demo_turn("Add a pricing section", EditorTab("<ul><li>x</li></ul><p>Hi</p>"), line, endpoint)
    assert said.texts[-1].endswith("The page has no element I could put a section into.")
