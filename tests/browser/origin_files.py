"""Serve the repository's files at the origin of an editor: `Chromium` leads its address to this server.

A request that a test answers itself goes from the browser through two processes, three times as expensive, and without
the browser's cache (decision 0507).
"""

import json
import mimetypes
from http.server import BaseHTTPRequestHandler
from urllib.parse import urlsplit

from local.processes import ROOT
from local.seed import EDITOR_ORIGINS
from tests.threaded_server import ThreadedServer

ORIGIN = EDITOR_ORIGINS[0]
"""An origin that the local tenant allows."""
IMPORTS = {
    "@fermata/client": "/packages/client/src/index.js",
    "@fermata/client/uploading-fetch": "/packages/client/src/uploading-fetch.js",
    "@fermata/panel": "/packages/panel/src/index.js",
    "marked": "/packages/node_modules/marked/lib/marked.esm.js",
}
HEAD = f"""<title>An editor</title><link rel="icon" href="data:,">
<script type="importmap">{json.dumps({"imports": IMPORTS})}</script>"""
PAGES = {
    "": f'<!doctype html><html lang="en">{HEAD}<body></body></html>',
    "alone": f"""<!doctype html><html lang="en">{HEAD}
<style>body {{ margin: 0; height: 100vh }}</style><body><fermata-panel id="p"></fermata-panel></body></html>""",
}
"""An empty page, and one with nothing but a panel."""


class OriginFilesServer(ThreadedServer):
    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), OriginFiles)


class OriginFiles(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        path = urlsplit(self.path).path.lstrip("/")
        file = (ROOT / path).resolve()
        if path in PAGES:
            self._answer(200, PAGES[path].encode(), "text/html")
        elif file.is_relative_to(ROOT) and file.is_file():
            self._answer(200, file.read_bytes(), mimetypes.guess_type(file.name)[0] or "application/octet-stream")
        else:
            self._answer(404, b"", "text/plain")

    def _answer(self, status: int, body: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        if self.path.startswith("/packages/"):
            self.send_header("cache-control", "max-age=3600")  # nobody changes them meanwhile
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""
