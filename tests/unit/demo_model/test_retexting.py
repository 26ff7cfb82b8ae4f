"""Let the demo model replace words: all of them, and nothing else."""

import base64
from typing import Any

import pytest

from fermata.domain.blocks import ImageBlock, TextBlock
from fermata.domain.messages import Message
from fermata.domain.model_io import ModelRequest, ModelResponse
from fermata.drivers.registry import get_provider
from fermata.drivers.transport.authenticated_endpoint import AuthenticatedEndpoint
from fermata.drivers.transport.http_connection import HttpConnection
from local.demo_model.rules.edit_plan import EditPlan
from local.demo_model.rules.edit_planning import plan_edits
from local.demo_model.rules.html_page import parse_page
from local.demo_model.rules.intents import parse_intent
from tests.images import make_image
from tests.unit.demo_model.editor_tab import SPECS, EditorTab, run_demo_turn


def asked(prompt: str, html: str) -> EditPlan | str:
    intent = parse_intent(prompt)
    assert intent is not None
    return plan_edits(intent, parse_page(html, ""))


def edits(prompt: str, html: str) -> dict[str, str]:
    found = asked(prompt, html)
    assert isinstance(found, EditPlan), found
    assert {edit.tool for edit in found.calls} == {"replaceNodeHtml"}
    return {edit.input["nodeId"]: edit.input["html"] for edit in found.calls}


PAGE = """<body uid="b"><main uid="m">
<h2 uid="h">Hello   there</h2><p uid="p">Hello, world. Hello again.</p>
<p uid="q">Say <em uid="e" class='x'>Hello &amp; bye</em> <img uid="i" src="a.png"> to Othello.</p>
<ul uid="u"><li uid="l">bye</li></ul><style uid="s">.Hello { top: 0 }</style>
<script uid="t">Hello</script></main></body>"""


def test_every_place_of_a_text_is_changed_and_markup_stays() -> None:
    assert edits("Replace “Hello” with “Hi <3”", PAGE) == {
        "h": "Hi &lt;3   there",
        "p": "Hi &lt;3, world. Hi &lt;3 again.",
        "e": "Hi &lt;3 &amp; bye",
    }
    said = asked("Replace “Hello” with “Hi”", PAGE)
    assert isinstance(said, EditPlan)
    assert said.text == "I change it in 3 elements: “Hi there”, “Hi, world. Hi again.”, “Hi & bye”."


@pytest.mark.parametrize(
    ("old", "changed"),
    [
        ("world", {"p": "Hello, X. Hello again."}),
        ("Hello there", {"h": "X"}),
        ("again.", {"p": "Hello, world. Hello X"}),
        ("thell", {"q": "Say <em class='x'>Hello &amp; bye</em> <img src=\"a.png\"> to OXo."}),
        ("WORLD", {"p": "Hello, X. Hello again."}),
        ("bye", {"e": "Hello &amp; X", "l": "X"}),
    ],
)
def test_a_text_is_found_within_a_longer_one(old: str, changed: dict[str, str]) -> None:
    assert edits(f"Replace “{old}” with “X”", PAGE) == changed


def test_words_beside_other_parts_are_left_and_reported() -> None:
    html = '<body uid="b">Hello <section uid="s"><h2 uid="h">Hello</h2></section></body>'
    found = asked("Replace “Hello” with “Hi”", html)
    assert isinstance(found, EditPlan)
    assert [edit.input["nodeId"] for edit in found.calls] == ["h"]
    assert "I leave it: 1 more" in found.text
    alone = asked(
        "Replace “Hello” with “Hi”", '<body uid="b">Hello <section uid="s"><h2 uid="h">x</h2></section></body>'
    )
    assert isinstance(alone, str)
    assert "is in one element with other parts" in alone


def test_a_text_that_spans_several_elements_is_not_changed() -> None:
    found = asked("Replace “big deal” with “x”", '<p uid="p">a <b uid="b">big</b> deal</p>')
    assert isinstance(found, str)
    assert "spans several elements" in found
    assert asked("Replace “zzz” with “x”", PAGE) == "I found the text “zzz” nowhere on this page."


def test_words_of_a_heading_are_changed_in_headings_first() -> None:
    html = '<h1 uid="h">Tea time</h1><p uid="p">Tea</p>'
    assert edits("Change the heading “Tea” to “Coffee”", html) == {"h": "Coffee time"}


UNCLOSED = '<body uid="b"><h1 uid="h">Shop<section uid="s"><h2 uid="g">Goods</h2><p uid="p">x</p></section></body>'


def test_a_heading_that_holds_the_page_is_not_rewritten() -> None:
    found = asked("Change the heading to “Hello”", UNCLOSED)
    assert isinstance(found, str)
    assert "holds other parts" in found
    assert edits("Change the heading to “Hello”", '<h1 uid="h">Shop <em uid="e">one</em></h1>') == {"h": "Hello"}


def test_on_a_page_with_unclosed_tags_style_waits_for_its_markup(
    line: HttpConnection, endpoint: AuthenticatedEndpoint
) -> None:
    tab = EditorTab("<body><main><p>a<p>b</main></body>")
    said = run_demo_turn("Add a pricing section", Loose(tab), line, endpoint)  # type: ignore[arg-type] # it answers as a tab does
    assert said.tool_names[-2:] == [["insertHtml"], ["applyCss"]]
    refusing = EditorTab("<body><main><p>a<p>b</main></body>", broken={"insertHtml": "This would break the page."})
    said = run_demo_turn("Add a pricing section", Loose(refusing), line, endpoint)  # type: ignore[arg-type] # the same
    assert said.tool_names[-1] == ["insertHtml"]
    assert refusing.css == ""
    assert "This would break the page." in said.texts[-1]


class Loose:
    """A tab whose page is written without the end tags of its paragraphs."""

    def __init__(self, tab: EditorTab) -> None:
        self.tab = tab

    def run_call(self, call: Any) -> Any:
        output = self.tab.run_call(call)
        if call.tool_name == "read_document":
            return output.model_copy(update={"data": output.data | {"html": output.data["html"].replace("</p>", "")}})
        return output


@pytest.mark.parametrize("provider", ["anthropic", "openai", "openrouter", "ollama"])
def test_a_picture_is_taken_and_not_seen(provider: str, line: HttpConnection, endpoint: AuthenticatedEndpoint) -> None:
    picture = ImageBlock(mime_type="image/png", data=base64.b64encode(make_image(30, 20, "PNG")).decode())
    for content, sees in (
        ((TextBlock(text="Good morning"), picture), True),
        ((TextBlock(text="Good morning"),), False),
    ):
        rows = (Message(position=0, role="user", content=content, turn="t"),)
        asking = ModelRequest(model="fermata-demo", system="s", messages=rows, tools=SPECS)
        *_, reply = get_provider(provider).stream(asking, line, endpoint)
        assert isinstance(reply, ModelResponse)
        said = "".join(block.text for block in reply.blocks if isinstance(block, TextBlock))
        assert ("cannot see what is on it" in said) is sees
