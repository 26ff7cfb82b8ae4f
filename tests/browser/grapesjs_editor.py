"""A page with a GrapesJS editor and the plugin, for tests.

    with serve_editor() as url:                       # the files of `packages/`, on a port of this machine
        editor = GrapesEditor(page, url)
        editor.load('<h1>Bread</h1>', 'h1 {color: red}')
        editor.execute("renameNode", {"nodeId": editor.uid("h1"), "label": "Title"})

Each method is called in the browser's thread.
"""

import base64
import contextlib
import json
import re
import threading
from collections.abc import Iterator, Mapping
from http.server import SimpleHTTPRequestHandler
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar
from urllib.parse import urlsplit

from playwright.sync_api import Page, Route
from selectolax.lexbor import LexborHTMLParser

from tests.threaded_server import ThreadedServer

REPOSITORY = Path(__file__).resolve().parents[2]
PACKAGES = REPOSITORY / "packages"
IMPORTS = {
    "grapesjs": "/node_modules/grapesjs/dist/grapes.mjs",
    "grapesjs-fermata": "/grapesjs/src/index.js",
    "@fermata/client": "/client/src/index.js",
    "@fermata/panel": "/panel/src/index.js",
    "marked": "/node_modules/marked/lib/marked.esm.js",
}
NOTHING: Mapping[str, str] = MappingProxyType({})
PICTURE = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
"""What every `.png` is here: one pixel."""
PAGE = f"""<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Editor</title>
<link rel="icon" href="data:,"><link rel="stylesheet" href="/node_modules/grapesjs/dist/css/grapes.min.css">
<script type="importmap">{json.dumps({"imports": IMPORTS})}</script>
<script src="/node_modules/grapesjs/dist/grapes.min.js"></script></head>
<body><div id="gjs"></div></body></html>"""
START = """
async ({html, css, config, options}) => {
  const {default: fermata, createExecutor} = await import("grapesjs-fermata");
  window.editor?.destroy();
  window.editor = grapesjs.init({
    container: "#gjs", height: "700px", storageManager: false, telemetry: false, cssIcons: "",
    undoManager: {trackSelection: false}, components: html, style: css,
    plugins: [fermata], pluginsOpts: {[fermata]: options}, ...config,
  });
  await new Promise(done => editor.onReady(() => setTimeout(done, 30)));
  window.executor = createExecutor(editor);
  return true;
}
"""
RESET = """
async ({html, css}) => {
  editor.Pages.select(editor.Pages.getAll()[0]);
  editor.Pages.getAll().slice(1).forEach(page => editor.Pages.remove(page));
  editor.Pages.getAll()[0].set({name: "", slug: null, template: null}, {silent: true});
  editor.setStyle(css);
  editor.setComponents(html);
  executor.document.code.load({});
  await new Promise(done => setTimeout(done, 10));
  editor.UndoManager.clear();
  await executor.snapshot();
}
"""
SETTLE = "() => new Promise(done => setTimeout(done, 20))"


class QuietFiles(SimpleHTTPRequestHandler):
    """Serves `packages/`, and the page with the editor."""

    extensions_map: ClassVar = {
        **SimpleHTTPRequestHandler.extensions_map,
        ".js": "text/javascript",
        ".mjs": "text/javascript",
        ".html": "text/html",
        ".css": "text/css",
    }

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments, directory=str(PACKAGES))

    def do_GET(self) -> None:
        if self.path != "/" and not self.path.endswith(".png"):
            super().do_GET()
            return
        body, kind = (PAGE.encode(), "text/html") if self.path == "/" else (PICTURE, "image/png")
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@contextlib.contextmanager
def serve_editor() -> Iterator[str]:
    with ThreadedServer(("127.0.0.1", 0), QuietFiles) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()


def route_editor(page: Page, origin: str, folder: Path = PACKAGES, replacements: Mapping[str, str] = NOTHING) -> str:
    """Serve the files of a folder at an origin whose pages may call the service. Returns the address of the editor.

    Args:
        replacements: texts to replace in scripts, such as the address of the service.
    """

    def fulfill(route: Route) -> None:
        path = urlsplit(route.request.url).path
        kind = QuietFiles.extensions_map.get(Path(path).suffix, "application/octet-stream")
        if path == "/":
            route.fulfill(body=PAGE, content_type="text/html")
        elif path.endswith(".png"):
            route.fulfill(body=PICTURE, content_type="image/png")
        elif not (folder / path.lstrip("/")).is_file():
            route.fulfill(status=404, body="")
        elif replacements and path.endswith(".js"):
            text = (folder / path.lstrip("/")).read_text()
            for old, new in replacements.items():
                text = text.replace(old, new)
            route.fulfill(body=text, content_type=kind)
        else:
            route.fulfill(path=folder / path.lstrip("/"), content_type=kind)

    page.route(f"{origin}/**", fulfill)
    return f"{origin}/"


class GrapesEditor:
    def __init__(self, page: Page, url: str) -> None:
        self.page = page
        self.problems: list[str] = []
        page.on("pageerror", lambda error: self.problems.append(str(error)))
        page.on("console", lambda entry: self._note(entry.type, entry.text, entry.location["url"]))
        page.set_viewport_size({"width": 1400, "height": 900})
        page.goto(url)

    def _note(self, kind: str, text: str, url: str) -> None:
        """Note an error. Fonts of other sites are out of reach here, and there are no films."""
        if kind == "error" and "ERR_NAME_NOT_RESOLVED" not in text and not url.endswith(".mp4"):
            self.problems.append(text)

    def start(self, html: str = "", css: str = "", config: dict[str, Any] | None = None, **options: Any) -> None:
        """Begin with a new editor."""
        members = {"html": html, "css": css, "config": config or {}, "options": options}
        self.page.evaluate(START, members)

    def load(self, html: str, css: str = "") -> None:
        """Replace the content of the editor by one page."""
        self.page.evaluate(RESET, {"html": html, "css": css})

    def execute(self, tool: str, tool_input: dict[str, Any], **members: Any) -> dict[str, Any]:
        request = {"toolName": tool, "input": tool_input, **members}
        result: dict[str, Any] = self.page.evaluate("request => executor.execute(request)", request)
        return result

    def undo(self) -> None:
        """Undo one step as the user does."""
        self.page.evaluate("() => { editor.UndoManager.undo(); }")
        self.page.evaluate(SETTLE)

    def redo(self) -> None:
        self.page.evaluate("() => { editor.UndoManager.redo(); }")
        self.page.evaluate(SETTLE)

    def reload_project(self) -> None:
        """Store the project, and load it into the editor anew."""
        self.page.evaluate(
            """async () => {
              const project = JSON.parse(JSON.stringify(editor.getProjectData()));
              editor.loadProjectData(project);
              editor.UndoManager.clear();
              await new Promise(done => setTimeout(done, 60));
            }"""
        )

    def read(self) -> dict[str, Any]:
        data: dict[str, Any] = self.execute("read_document", {})["data"]
        return data

    def uid(self, selector: str) -> str:
        """Return the node id of the first element that a selector finds."""
        return find_uid(self.read()["html"], selector)

    def html(self) -> str:
        """Return the body's HTML without node ids."""
        return re.sub(r' uid="\w+"', "", self.read()["html"])

    def css(self) -> str:
        css: str = self.read()["css"]
        return css

    def revision(self) -> str:
        revision: str = self.page.evaluate("() => executor.revision()")
        return revision

    def state(self) -> tuple[str, str, str]:
        """Return what a reader can see of the content, and its revision."""
        return self.html(), self.css(), self.revision()

    def undo_step_count(self) -> int:
        count: int = self.page.evaluate("() => editor.UndoManager.getStackGroup().length")
        return count


def find_uid(html: str, selector: str) -> str:
    found = LexborHTMLParser(html).css_first(selector)
    assert found is not None, f"{selector} is not in {html}"
    return str(found.attributes["uid"])
