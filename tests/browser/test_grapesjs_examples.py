"""The examples of the GrapesJS plugin, in its README and in examples/grapesjs, do what they say."""

import re
import subprocess
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from local.cloud import LocalCloud
from local.seed import EDITOR_ORIGINS
from tests.browser.chromium import Chromium
from tests.browser.grapesjs_editor import PACKAGES, REPOSITORY, route_editor

README = (PACKAGES / "grapesjs" / "README.md").read_text()
BLOCKS = re.findall(r"^```js\n(.*?)^```", README, re.DOTALL | re.MULTILINE)
MAX_LINES = 10


def run_block(page: Page, code: str) -> None:
    """Run a block as a module that has the names of the blocks before it."""
    known = "const {editor, client} = window.names ?? {};\n" if "grapesjs.init" not in code else ""
    names = re.findall(r"^const (\w+|\{.*?\}) =", code, re.MULTILINE)
    exported = ", ".join(name.strip("{ }") for name in names)
    imports, body = (
        re.findall(r"^import .*\n", code, re.MULTILINE),
        re.sub(r"^import .*\n", "", code, flags=re.MULTILINE),
    )
    page.evaluate("() => { window.isDone = undefined; }")
    note = f"window.names = {{...window.names, {exported}}}; window.isDone = true;"
    page.add_script_tag(type="module", content="".join([*imports, known, body, note]))
    page.wait_for_function("() => window.isDone")


def test_the_examples_of_the_readme_run(browser: Chromium, page: Page, cloud: LocalCloud) -> None:
    first, ask, executor = BLOCKS
    assert len(first.strip().splitlines()) <= MAX_LINES
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.goto(route_editor(page, EDITOR_ORIGINS[0]))
    run_block(page, first.replace("https://fermata.example", cloud.url).replace("<a token of the user>", cloud.token))
    run_block(page, ask)
    assert page.evaluate("() => names.type") == "done"
    page.evaluate("() => { names.before = names.editor.getHtml(); }")
    run_block(page, executor)
    assert page.evaluate("() => names.turn.result.then(end => end.type)") == "done"
    assert problems == []


def test_every_command_and_event_of_the_readme_exists() -> None:
    sources = "".join(path.read_text() for path in (PACKAGES / "grapesjs" / "src").rglob("*.js"))
    names = set(re.findall(r"`(fermata:[\w-]+)`", README))
    assert len(names) > 8
    assert [name for name in sorted(names) if f'"{name}"' not in sources] == []


@pytest.mark.parametrize("prompt", ["Add a pricing section"])
def test_the_page_builder_of_the_examples_is_edited_and_brought_back(
    browser: Chromium, page: Page, cloud: LocalCloud, prompt: str
) -> None:
    replacements = {"http://127.0.0.1:8787": cloud.url}
    url = route_editor(page, EDITOR_ORIGINS[0], REPOSITORY, replacements)
    page.goto(f"{url}examples/grapesjs/index.html#{cloud.token}")
    frame = page.frame_locator("iframe.gjs-frame")
    expect(frame.locator("h1")).to_have_text("The Corner Bakery")
    before = frame.locator("main").inner_html()
    page.get_by_label("What shall be changed?").fill(prompt)
    page.get_by_role("button", name="Ask").click()
    expect(page.get_by_role("button", name="Undo")).to_be_enabled()
    assert frame.locator("body").inner_text() != ""
    assert frame.locator("main").inner_html() != before or frame.locator("section").count() > 0
    page.get_by_role("button", name="Undo").click()
    expect(page.locator("#answer")).to_contain_text("were taken back")
    assert frame.locator("main").inner_html() == before
    assert Path(REPOSITORY / "examples" / "grapesjs" / "README.md").exists()


def test_a_page_without_modules_loads_the_plugin_by_its_name(browser: Chromium, page: Page) -> None:
    subprocess.run(["node", "build.js"], cwd=PACKAGES / "grapesjs", check=True, capture_output=True)
    page.goto(route_editor(page, EDITOR_ORIGINS[0]))
    page.add_script_tag(path=PACKAGES / "grapesjs/dist/umd/grapesjs-fermata.min.js")
    result = page.evaluate(
        """async () => {
          const editor = grapesjs.init({
            container: "#gjs", storageManager: false, telemetry: false, cssIcons: "", components: "<h1>Bread</h1>",
            plugins: ["grapesjs-fermata"], pluginsOpts: {"grapesjs-fermata": {panel: false}},
          });
          await new Promise(done => editor.onReady(done));
          return editor.runCommand("fermata:execute", {toolName: "read_document", input: {}});
        }"""
    )
    assert "Bread" in result["data"]["html"]
