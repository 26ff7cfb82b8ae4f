"""The GrapesJS plugin cleans HTML from a model as the table says that it shares with the client for files."""

from typing import Any

import pytest

from tests.browser.chromium import Chromium
from tests.browser.grapesjs_editor import GrapesEditor
from tests.shared_cases.cases import read_cases
from tests.shared_cases.normalized_html import normalize_html

CASES = read_cases("sanitizer", "grapesjs")
CLEAN = """
async html => {
  const {cleanHtml} = await import("/grapesjs/src/html/clean-html.js");
  const {html: clean, note} = cleanHtml(html);
  return [clean, note];
}
"""
HOSTILE = [
    '<div data-gjs-script="window.top.hit = 1">a</div>',
    """<div data-gjs-components='[{"tagName":"script","type":"script","content":"window.top.hit = 1"}]'>a</div>""",
    '<div data-gjs-content="&lt;img src=x onerror=&quot;window.top.hit = 1&quot;&gt;">a</div>',
    '<div data-gjs-type="script">window.top.hit = 1</div>',
    """<div data-gjs-attributes='{"onclick":"window.top.hit = 1"}'>a</div>""",
    '<img src=x onerror="window.top.hit = 1">',
    '<iframe srcdoc="<script>window.top.hit = 1</script>"></iframe>',
    '<svg><animate onbegin="window.top.hit = 1" attributeName="x" dur="1s"/></svg>',
    '<math><mtext><table><mglyph><style><!--</style><img title="--&gt;&lt;img src=1 onerror=window.top.hit=1&gt;">',
    '<noscript><p title="</noscript><img src=x onerror=window.top.hit=1>"></noscript>',
    "<form><math><mtext></form><form><mglyph><style></math><img src onerror=window.top.hit=1>",
    '<svg></p><style><a id="</style><img src=1 onerror=window.top.hit=1>">',
]


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_html_is_cleaned_as_the_shared_table_says(
    browser: Chromium, editor: GrapesEditor, case: dict[str, Any]
) -> None:
    clean, note = editor.page.evaluate(CLEAN, case["html"])
    assert normalize_html(clean) == normalize_html(case["is"])
    assert all(name in note for name in case["leftOut"])
    assert bool(note) == bool(case["leftOut"])


@pytest.mark.parametrize("html", HOSTILE)
def test_nothing_of_inserted_html_runs_in_the_canvas_or_in_the_exported_page(
    browser: Chromium, editor: GrapesEditor, html: str
) -> None:
    editor.load("<main></main>")
    editor.execute("insertHtml", {"parentId": editor.uid("main"), "html": html})
    exported = """async () => {
      const frame = document.createElement("iframe");
      frame.srcdoc = editor.getHtml();
      document.body.append(frame);
      await new Promise(done => setTimeout(done, 60));
      frame.remove();
      return [window.hit ?? null, editor.Canvas.getWindow().hit ?? null];
    }"""
    assert editor.page.evaluate(exported) == [None, None]


LONG = 200_000
REPEATED = [
    '<a "',
    "<",
    "<!--",
    "<?",
    "<% ",
    "<p><b>",
    "a='",
    "```\n",
    "url(a",
    "@media x{",
    '{"',
    "/*",
    "<svg><style>",
    "\n \n",
]


@pytest.mark.parametrize("piece", REPEATED)
def test_long_hostile_texts_are_read_in_time_that_grows_with_their_length(
    browser: Chromium, editor: GrapesEditor, piece: str
) -> None:
    """Quadratic time would take minutes, and hang the editor of the person who waits."""
    read = """async ([piece, length]) => {
      const {cleanHtml} = await import("/grapesjs/src/html/clean-html.js");
      const {parseCss} = await import("/grapesjs/src/css/parse-css.js");
      const text = piece.repeat(length / piece.length);
      for (const read of [cleanHtml, parseCss, css => parseCss(css, {onRefusal: () => {}})]) {
        try { read(text); } catch (error) { if (error.constructor.name !== "ToolError") throw error; }
      }
      return true;
    }"""
    assert editor.page.evaluate(read, [piece, LONG])
