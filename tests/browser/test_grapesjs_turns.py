"""A turn of the service edits the site in a GrapesJS editor, and is taken back there."""

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import expect

from local.cloud import LocalCloud
from local.seed import EDITOR_ORIGINS
from tests.browser.chromium import Chromium
from tests.browser.grapesjs_editor import GrapesEditor, route_editor
from tests.e2e.demo_model_client import DemoModelClient, script_marker, text_step, tool_call_step

HTML = '<main><h1>Bread</h1><p class="lead">Fresh <b>daily</b></p></main><footer><p>Open</p></footer>'
CSS = ":root{--color-crust:#a52}.lead{color:var(--color-crust)}"
ASK = """
async prompt => {
  const turn = await editor.runCommand("fermata:ask", {prompt});
  window.turn = turn;
  const end = await turn.result;
  return {id: turn.id, end, events: (await Array.fromAsync(turn.events())).map(event => event.type)};
}
"""


@pytest.fixture(scope="module")
def editor(browser: Chromium, cloud: LocalCloud) -> Iterator[GrapesEditor]:
    window = browser.run(browser.open_page)
    url = browser.run(lambda: route_editor(window, EDITOR_ORIGINS[0]))
    made = browser.run(lambda: GrapesEditor(window, url))
    options = {"baseUrl": cloud.url, "token": cloud.token}
    browser.run(lambda: made.start(HTML, CSS, client=options))
    yield made
    browser.run(window.context.close)


@pytest.fixture
def model(cloud: LocalCloud) -> Iterator[DemoModelClient]:
    assert cloud.model is not None
    client = DemoModelClient(cloud.model.url)
    yield client
    client.close()


def test_a_turn_edits_the_site_and_its_undo_brings_the_site_back(
    browser: Chromium, editor: GrapesEditor, model: DemoModelClient
) -> None:
    editor.load(HTML, CSS)
    before = editor.state()
    key = model.add_script(
        tool_call_step(
            ("insertHtml", {"parentId": editor.uid("footer"), "html": '<p class="new">New</p>'}),
            ("applyCss", {"css": ".new{padding:1rem;margin:var(--color-crust)}"}),
            ("applyCss", {"css": "@import url(x.css);"}),
            text="I add it.",
        ),
        tool_call_step(("renameNode", {"nodeId": editor.uid("h1"), "label": "Title"})),
        text_step("It is there."),
    )
    turn = editor.page.evaluate(ASK, f"Add it. {script_marker(key)}")
    assert turn["end"]["type"] == "done"
    assert '<p class="new">New</p>' in editor.html()
    assert "margin:var(--color-crust)" in editor.css()
    after = editor.state()
    requests = model.list_requests(key)
    assert "@import cannot be kept in this editor" in str(requests[1])
    journal = editor.page.evaluate("() => turn.journal()")
    assert [(entry["toolName"], entry["state"]) for entry in entries_of(journal)] == [
        ("insertHtml", "applied"),
        ("applyCss", "applied"),
        ("renameNode", "applied"),
    ]
    editor.reload_project()
    undo = editor.page.evaluate("async () => (await turn.undo()).result")
    assert (undo["type"], len(undo["report"]["undone"]), undo["report"]["skipped"]) == ("done", 3, [])
    assert editor.state() == before
    redo = editor.page.evaluate("async () => { const u = (await turn.journal()); return u; }")
    assert {entry["state"] for entry in entries_of(redo)} == {"undone"}
    assert after != before
    assert editor.problems == []


def entries_of(journal: Any) -> list[dict[str, Any]]:
    return list(journal["entries"] if isinstance(journal, dict) else journal)


def test_the_prompt_describes_the_site_in_the_editor(
    browser: Chromium, editor: GrapesEditor, model: DemoModelClient
) -> None:
    editor.load(HTML, CSS)
    editor.page.evaluate("() => { editor.select(editor.getWrapper().find('h1')[0]); }")
    key = model.add_script(tool_call_step(("list_documents", {})), text_step("I see."))
    assert editor.page.evaluate(ASK, f"Look. {script_marker(key)}")["end"]["type"] == "done"
    first, second = (str(request) for request in model.list_requests(key))
    assert f"root: {editor.uid('body')}" in first
    assert f"selected: {editor.uid('h1')}" in first
    assert "tablet@992px:(max-width: 992px)" in first
    assert "color-crust=" in first
    assert "Homepage" in second


def test_a_conflict_with_the_users_own_change_reaches_the_model(
    browser: Chromium, editor: GrapesEditor, model: DemoModelClient
) -> None:
    editor.load(HTML, CSS)
    heading = editor.uid("h1")
    editor.page.evaluate(
        """() => editor.once("fermata:edit", () => {
          setTimeout(() => editor.getWrapper().find("h1")[0].components("User was here"), 0);
        })"""
    )
    key = model.add_script(
        tool_call_step(
            ("renameNode", {"nodeId": editor.uid("footer"), "label": "Foot"}),
            ("list_documents", {}),
            ("replaceNodeHtml", {"nodeId": heading, "html": "Mine"}),
        ),
        text_step("I leave it."),
    )
    assert editor.page.evaluate(ASK, f"Rename it. {script_marker(key)}")["end"]["type"] == "done"
    assert "<h1>User was here</h1>" in editor.html()
    assert "User was here" in str(model.list_requests(key)[1])


def test_the_panel_in_the_editor_asks_edits_and_undoes(
    browser: Chromium, editor: GrapesEditor, cloud: LocalCloud, model: DemoModelClient
) -> None:
    editor.page.evaluate("() => import('@fermata/panel')")
    editor.start(HTML, CSS, client={"baseUrl": cloud.url, "token": cloud.token})
    before = editor.state()
    html = '<p class="new">New</p>'
    key = model.add_script(
        tool_call_step(("insertHtml", {"parentId": editor.uid("footer"), "html": html}), text="I add it."),
        text_step("It is there."),
    )
    editor.page.get_by_role("button", name="Assistant").click()
    panel = editor.page.locator("fermata-panel")
    panel.get_by_role("textbox", name="Ask for a change").fill(f"Add it. {script_marker(key)}")
    editor.page.keyboard.press("Enter")
    expect(panel).to_contain_text("It is there.")
    assert html in editor.html()
    assert editor.page.evaluate("() => editor.Canvas.getBody().innerText").strip().endswith("New")
    panel.get_by_role("button", name="Undo").first.click()
    editor.page.wait_for_function("revision => executor.revision() === revision", arg=before[2])
    assert editor.state() == before
    assert editor.problems == []
