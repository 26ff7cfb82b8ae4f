"""The GrapesJS plugin works on pages, templates, symbols, code and the canvas of a whole site."""

import base64

from fermata.tools.site.design_tokens.listing import list_tokens
from fermata.tools.site.document_listing import list_site_documents
from fermata_client import HtmlDocument
from fermata_client.document.site_snapshot import build_site_snapshot
from tests.browser.chromium import Chromium
from tests.browser.grapesjs_editor import GrapesEditor
from tests.client.html_strategies import BAKERY

HTML = '<main><h1 id="top">Bread</h1><p class="lead" style="color:red">Fresh</p></main>'
MIN_PANEL_PIXELS = 340
"""Width that can be read in; the column of GrapesJS is 15 % of the window."""
CSS = ":root{--brand:#0a0;--font-body:Georgia, serif;--space-s:8px;--space-m:16px}.lead{margin:0}"


def test_a_page_is_added_named_copied_and_deleted_and_each_is_taken_back(
    browser: Chromium, editor: GrapesEditor
) -> None:
    editor.load(HTML, CSS)
    first = editor.page.evaluate("() => editor.Pages.getSelected().getId()")
    revisions = [editor.revision()]
    added = editor.execute("addPage", {"title": "About us"})
    assert (added["data"]["slug"], added["ok"]) == ("about-us", True)
    copy = editor.execute("duplicatePage", {"pageId": first, "title": "Copy", "slug": "about-us"})
    assert copy["data"]["slug"] == "about-us-2"
    assert editor.css().count("color:red") == 2  # the copy has the rule of its id
    named = editor.execute("renamePage", {"pageId": copy["data"]["pageId"], "title": "Menu", "slug": "menu"})
    template = editor.execute("setPageTemplate", {"pageId": first, "target": {"kind": "notFound"}})
    deleted = editor.execute("deletePage", {"pageId": first})
    results = [added, copy, named, template, deleted]
    revisions += [result["revision"] for result in results]
    assert len(set(revisions)) == 6
    for result, revision in zip(reversed(results), reversed(revisions[:-1]), strict=True):
        restored = editor.execute("restore", result["inverse"][0]["input"])
        assert (restored["ok"], restored["revision"]) == (True, revision), restored


def test_the_editors_own_undo_takes_back_a_page_and_its_names(browser: Chromium, editor: GrapesEditor) -> None:
    editor.load(HTML, CSS)
    first = editor.page.evaluate("() => editor.Pages.getSelected().getId()")
    before = editor.revision()
    editor.execute("renamePage", {"pageId": first, "title": "Menu", "slug": "menu"})
    editor.execute("setPageTemplate", {"pageId": first, "target": {"kind": "everywhere"}})
    after = editor.revision()
    editor.undo()
    editor.undo()
    assert editor.revision() == before
    editor.redo()
    editor.redo()
    assert editor.revision() == after


def test_nodes_of_pages_that_are_not_shown_can_be_edited(browser: Chromium, editor: GrapesEditor) -> None:
    editor.load(HTML, CSS)
    first, heading = editor.page.evaluate("() => editor.Pages.getSelected().getId()"), editor.uid("h1")
    editor.execute("addPage", {"title": "Two"})
    assert editor.execute("updateNodeProps", {"nodeId": heading, "patch": {"text": "Loaves"}})["ok"]
    read = editor.execute("read_document", {"document": {"type": "page", "id": first}})
    assert "Loaves" in read["data"]["html"]
    opened = editor.execute("open_document", {"document": {"type": "page", "id": first}})
    assert opened["ok"]
    assert "Loaves" in editor.html()


def test_a_symbol_is_a_visual_component_whose_instances_change_with_it(browser: Chromium, editor: GrapesEditor) -> None:
    editor.load("<main><p class='card'>One</p></main>", "")
    editor.page.evaluate("() => { editor.Components.addSymbol(editor.getWrapper().find('.card')[0]); }")
    snapshot = editor.page.evaluate("() => executor.snapshot()")["snapshot"]
    (symbol,) = snapshot["site"]["visualComponents"]
    reference = {"type": "visualComponent", "id": symbol["id"]}
    assert "One" in editor.execute("read_document", {"document": reference})["data"]["html"]
    assert "no canvas of its own" in editor.execute("open_document", {"document": reference})["error"]
    assert editor.execute("updateNodeProps", {"nodeId": symbol["id"], "patch": {"text": "Two"}})["ok"]
    assert editor.html() == '<body><main><p class="card">Two</p></main></body>'
    editor.page.evaluate("() => { editor.Components.getSymbols().forEach(one => one.remove()); }")


def test_code_is_written_patched_read_and_kept_with_the_project(browser: Chromium, editor: GrapesEditor) -> None:
    editor.load(HTML, CSS)
    written = editor.execute(
        "write_code_asset", {"path": "site.css", "type": "style", "content": "h1{letter-spacing:3px}"}
    )
    script = editor.execute("write_code_asset", {"path": "js/a.js", "type": "script", "content": "window.top.hit = 1"})
    assert "does not run them" in script["data"]["note"]
    spacing = "() => getComputedStyle.call(window, editor.getWrapper().find('h1')[0].getEl()).letterSpacing"
    assert editor.page.evaluate(spacing) == "3px"
    replacements = [{"oldText": "3px", "newText": "4px"}]
    patch = {"path": "site.css", "expectedHash": written["data"]["hash"], "replacements": replacements}
    patched = editor.execute("patch_code_asset", patch)
    assert editor.page.evaluate(spacing) == "4px"
    assert "not what you read" in editor.execute("patch_code_asset", patch)["error"]
    editor.reload_project()
    read = editor.execute("read_code_asset", {"path": "site.css"})["data"]
    assert (read["content"], read["hash"]) == ("h1{letter-spacing:4px}", patched["data"]["hash"])
    listed = editor.execute("list_code_assets", {})["data"]["assets"]
    assert [asset["path"] for asset in listed] == ["js/a.js", "site.css"]
    runtime = editor.execute("inspect_code_runtime", {})["data"]
    assert [asset["path"] for asset in runtime["scripts"]] == ["js/a.js"]
    assert set(editor.page.evaluate("() => editor.runCommand('fermata:code-assets')")) == {"js/a.js", "site.css"}
    assert editor.page.evaluate("() => window.hit ?? null") is None
    assert editor.execute("restore", patched["inverse"][0]["input"])["ok"]
    assert editor.execute("read_code_asset", {"path": "site.css"})["data"]["content"] == "h1{letter-spacing:3px}"


def test_the_page_is_reported_at_a_breakpoint_with_a_picture_and_the_canvas_stays(
    browser: Chromium, editor: GrapesEditor
) -> None:
    editor.load('<main style="width:900px;height:40px;background:#a52">A</main><img src="gone.jpg">', CSS)
    before = editor.page.evaluate("() => editor.getDevice()")
    steps, revision = editor.undo_step_count(), editor.revision()
    result = editor.execute("render_snapshot", {"breakpointId": "mobilePortrait"})
    data = result["data"]
    assert (data["breakpointId"], data["width"]) == ("mobilePortrait", 320)
    (box,) = [box for box in data["layout"]["boxes"] if box["tag"] == "main"]
    assert (box["width"], box["height"]) == (900, 40)
    warnings = {entry["warning"] for entry in data["layout"]["warnings"]}
    assert any("over the right edge" in warning for warning in warnings)
    assert "The image has no alt text." in warnings
    picture = base64.b64decode(result["images"][0]["data"])
    assert (picture[:2], data["screenshot"]["status"]) == (b"\xff\xd8", "captured")
    assert editor.page.evaluate("() => editor.getDevice()") == before
    assert (editor.undo_step_count(), editor.revision()) == (steps, revision)
    without = editor.execute("render_snapshot", {"captureScreenshot": False})
    assert "images" not in without
    editor.problems.clear()


def test_the_snapshot_has_the_shape_that_the_service_reads(browser: Chromium, editor: GrapesEditor) -> None:
    editor.load(HTML, CSS)
    snapshot = editor.page.evaluate("() => executor.snapshot()")["snapshot"]
    expected = build_site_snapshot(HtmlDocument.parse(BAKERY.read_bytes()))
    assert snapshot.keys() == expected.keys()
    assert snapshot["site"].keys() == expected["site"].keys()
    assert snapshot["page"].keys() >= expected["page"].keys()
    (document,) = list_site_documents(snapshot)["documents"]
    assert (document["summary"], document["current"], document["rootNodeId"]) == ("Homepage", True, editor.uid("body"))
    tokens = list_tokens(snapshot)
    assert [color["cssVar"] for color in tokens["colors"]] == ["--brand"]
    assert [font["cssVar"] for font in tokens["fonts"]] == ["--font-body"]
    assert [step["cssVar"] for group in tokens["spacing"] for step in group["steps"]] == ["--space-s", "--space-m"]


def test_styles_that_the_site_begins_with_keep_shorthands_and_fallbacks(
    browser: Chromium, editor: GrapesEditor
) -> None:
    css = (
        ".a{margin:var(--m);color:red;color:oklch(0.6 0.2 20);&:hover{gap:0}}@layer base{.a{top:0}}@import url(x.css);"
    )
    editor.start("<p class='a'>A</p>", css)
    assert "margin:var(--m);color:red;color:oklch(0.6 0.2 20)" in editor.css()
    assert ".a:hover{gap:0" in editor.css()
    assert "@layer base{.a{top:0" in editor.css()


def test_the_button_of_the_panel_opens_it_and_a_host_can_put_it_elsewhere(
    browser: Chromium, editor: GrapesEditor
) -> None:
    editor.page.evaluate("() => { customElements.define('fermata-panel', class extends HTMLElement {}); }")
    editor.start(HTML, CSS, client={"baseUrl": "http://127.0.0.1:9", "token": "x"})
    button = editor.page.get_by_role("button", name="Assistant")
    button.focus()
    editor.page.keyboard.press("Enter")
    panel = editor.page.locator("fermata-panel")
    panel.wait_for(state="attached")
    width = "() => document.querySelector('.gjs-pn-views-container').offsetWidth"
    assert editor.page.evaluate(width) >= MIN_PANEL_PIXELS
    assert panel.evaluate("one => [one.scope, one.executor === executor]") == ["site", True]
    editor.page.wait_for_function("() => document.querySelector('fermata-panel').client?.start")
    button.click()
    panel.wait_for(state="hidden")
    assert editor.page.evaluate(width) < MIN_PANEL_PIXELS
    editor.page.evaluate("() => editor.runCommand('fermata:mount', {target: document.body})")
    assert editor.page.evaluate("() => document.querySelector('fermata-panel').parentElement === document.body")


def test_texts_are_in_the_language_of_the_editor(browser: Chromium, editor: GrapesEditor) -> None:
    editor.start(HTML, CSS, config={"i18n": {"locale": "de", "detectLocale": False, "messagesAdd": {}}})
    assert editor.page.evaluate("() => editor.t('fermata.open')") == "Assistent"
