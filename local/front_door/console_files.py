"""Find the files of the console: its own, the packages' sources, and the few of npm packages that it loads."""

import base64
import hashlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
CONTENT_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".mjs": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
}
PACKAGES = ("client", "grapesjs", "panel")
NPM_FILES = {
    "npm/grapesjs/grapes.min.js": "grapesjs/dist/grapes.min.js",
    "npm/grapesjs/grapes.min.css": "grapesjs/dist/css/grapes.min.css",
    "npm/grapesjs/locale/de.mjs": "grapesjs/locale/de.mjs",
    "npm/marked/marked.esm.js": "marked/lib/marked.esm.js",
}
"""Paths below `/console/`, and where `npm ci` puts the files."""
INDEX = "index.html"
_PATH = re.compile(r"[\w-][\w.-]{0,80}(?:/[\w-][\w.-]{0,80}){0,8}", re.ASCII)
"""No part begins with a dot."""
_IMPORT_MAP = re.compile(r'<script type="importmap">(.*?)</script>', re.DOTALL)


class ConsoleFile(NamedTuple):
    content: bytes
    content_type: str

    @property
    def etag(self) -> str:
        return f'"{hashlib.sha256(self.content).hexdigest()[:32]}"'


class ConsoleFiles:
    """The files by their paths below `/console/`. Nothing else of the project can be read through it."""

    def __init__(self, root: Path = ROOT) -> None:
        self._root = root

    def read(self, path: str) -> ConsoleFile | None:
        """Return a file, or None if there is none under this path. The empty path is the page."""
        file = self._find(path or INDEX)
        if file is None or not file.is_file():
            return None
        return ConsoleFile(file.read_bytes(), CONTENT_TYPES[file.suffix])

    def list_paths(self) -> Iterator[str]:
        """Yield the paths of all files that are there."""
        yield from (path for path in NPM_FILES if self._npm_file(path).is_file())
        for prefix, folder in self._folders():
            for file in sorted(folder.rglob("*")):
                path = prefix + file.relative_to(folder).as_posix()
                if file.is_file() and self._find(path):
                    yield path

    def list_missing_packages(self) -> list[str]:
        """Return the npm packages that are not installed, without which there is no editor."""
        missing = {path.split("/")[1] for path in NPM_FILES if not self._npm_file(path).is_file()}
        return sorted(missing)

    def _find(self, path: str) -> Path | None:
        if not _PATH.fullmatch(path):
            return None
        if path in NPM_FILES:
            return self._npm_file(path)
        for prefix, folder in self._folders():
            if path.startswith(prefix):
                file = (folder / path.removeprefix(prefix)).resolve()
                is_inside = file.is_relative_to(folder.resolve()) and file.suffix in CONTENT_TYPES
                return file if is_inside else None
        return None

    def _folders(self) -> Iterator[tuple[str, Path]]:
        """Yield the folders with the prefixes of their paths, the longest first."""
        for name in PACKAGES:
            yield f"packages/{name}/", self._root / "packages" / name / "src"
        yield "", self._root / "console"

    def _npm_file(self, path: str) -> Path:
        return self._root / "packages" / "node_modules" / NPM_FILES[path]


def make_content_security_policy(page: str, *, upload_source: str = "") -> str:
    """Make the policy of the page: its own scripts and the import map within it, and no others (decision 0277).

    Args:
        page: The text of `index.html`.
        upload_source: Where the page may send uploads, besides its own origin.
    """
    hashes = "".join(f" 'sha256-{_hash_script(script)}'" for script in _IMPORT_MAP.findall(page))
    directives = (
        "default-src 'none'",
        f"script-src 'self'{hashes}",
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data: blob: https:",
        "media-src 'self' data: blob: https:",
        "font-src 'self' data: https:",
        f"connect-src 'self'{upload_source and ' ' + upload_source}",
        "frame-src 'none'",
        "form-action 'none'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
    return "; ".join(directives)


def _hash_script(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
