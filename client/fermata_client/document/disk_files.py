"""Read and check the files of a page on disk."""

import os
import re
from pathlib import Path

from fermata_client.document.html_document import HtmlDocument
from fermata_client.html.tags import name_set
from fermata_client.html.template_preamble import preamble_end

HTML_EXTENSIONS = (".html", ".htm", ".xhtml", ".xht", ".shtml")
TEMPLATE_EXTENSIONS = name_set(
    ".php .phtml .twig .jinja .jinja2 .j2 .njk .liquid .hbs .handlebars .mustache .ejs .erb .eex .heex .jsp .asp .aspx "
    ".cshtml .razor .tmpl .tpl .gohtml"
)
OTHER_LANGUAGE_EXTENSIONS = name_set(
    ".css .scss .sass .less .js .mjs .cjs .ts .jsx .tsx .json .xml .svg .rss .atom .md .markdown .mdx .txt .csv .py "
    ".rb .go .rs .java .c .h .cpp .sh .yaml .yml .toml .ini .env .lock .pdf"
)
FIRST_TAGS = name_set(
    "html head body title meta link style script base template main header footer nav section article aside div p "
    "h1 h2 h3 h4 h5 h6 ul ol dl table form figure blockquote pre hr a img button span details dialog address"
)
"""Tags with which an HTML page or a part of one begins."""
MAX_FILE_BYTES = 2_000_000
"""A page travels with every answer, and the service takes 4.5 MB."""


_FIRST_TAG = re.compile(rb"(?:\s++|<!--.*?-->)*+<([A-Za-z][A-Za-z0-9]*)[\s/>]", re.DOTALL)


class NotAnHtmlFileError(ValueError):
    """A file cannot be edited. The message says why."""


def resolve_path(path: Path) -> Path:
    """Return the absolute path without symbolic links.

    A link that leads to itself stays, and can be neither read nor written.
    """
    return Path(os.path.realpath(path))


def is_utf8_text(content: bytes) -> bool:
    try:
        return "\x00" not in content.decode()
    except UnicodeDecodeError:
        return False


def read_html_file(path: Path, display_name: str = "") -> bytes:
    """Read an HTML file.

    Args:
        display_name: the name of the file in error messages; empty for its path.

    Raises:
        NotAnHtmlFileError: it does not exist, is too large, or is not HTML in UTF-8.
    """
    name = display_name or str(path)
    if not path.exists():
        raise NotAnHtmlFileError(f"There is no file {name}.")
    if not path.is_file():
        raise NotAnHtmlFileError(f"{name} is not a file.")
    _check_size(path.stat().st_size, name)
    try:
        source = path.read_bytes()
    except OSError as error:
        raise NotAnHtmlFileError(f"{name} cannot be read: {error.strerror}.") from error
    check_html(path, source, name)
    return source


def _check_size(size: int, name: str) -> None:
    if size > MAX_FILE_BYTES:
        raise NotAnHtmlFileError(f"{name} is too large: the limit is {MAX_FILE_BYTES // 1_000_000} MB.")


def check_html(path: Path, source: bytes, name: str) -> None:
    """Raise `NotAnHtmlFileError` if a file of this path and content could not be edited."""
    _check_size(len(source), name)
    try:
        text = source.decode()
    except UnicodeDecodeError as error:
        raise NotAnHtmlFileError(
            f"{name} is not UTF-8 (byte {error.start}). Save it as UTF-8 and try again."
        ) from error
    if "\x00" in text or not (path.suffix.lower() in HTML_EXTENSIONS or _looks_like_html(path, source)):
        raise NotAnHtmlFileError(f"{name} is not an HTML page.")


def check_code_file(name: str, content: bytes) -> None:
    """Raise `NotAnHtmlFileError` if a style sheet or script of this content could not be read."""
    _check_size(len(content), name)
    if not is_utf8_text(content):
        raise NotAnHtmlFileError(f"{name} is no text in UTF-8.")


def _looks_like_html(path: Path, source: bytes) -> bool:
    """Return whether a file of another name holds HTML: a template by its name, any other by its first tag."""
    suffix = path.suffix.lower()
    if suffix in OTHER_LANGUAGE_EXTENSIONS:
        return False
    if suffix in TEMPLATE_EXTENSIONS:
        return bool(HtmlDocument.parse(source).tree.elements)
    first_tag = _FIRST_TAG.match(source, preamble_end(source))
    return first_tag is not None and first_tag[1].decode().lower() in FIRST_TAGS


def check_output_path(path: Path) -> None:
    """Raise `NotAnHtmlFileError` if no file can be created at the path, as far as that is known without creating it."""
    if path.is_dir():
        raise NotAnHtmlFileError(f"{path} is a folder. Name the file that is to be written, as {path / 'index.html'}.")
    if path.suffix.lower() in OTHER_LANGUAGE_EXTENSIONS:
        raise NotAnHtmlFileError(f"{path} is no name of an HTML page. Name one as {path.with_suffix('.html')}.")
    if path.name.startswith("."):
        raise NotAnHtmlFileError(f"{path} is a hidden file. Name the file that is to be written, as index.html.")
    if path.is_file() and path.suffix.lower() not in HTML_EXTENSIONS and not _may_be_replaced(path):
        raise NotAnHtmlFileError(f"{path} is there already, and is no HTML page. Name another file.")
    folder = next(parent for parent in path.parents if parent.exists())
    if not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
        raise NotAnHtmlFileError(f"{path} cannot be written: {folder} is no folder that you may write to.")


def _may_be_replaced(path: Path) -> bool:
    """Return whether the file is empty or a page."""
    with path.open("rb") as file:
        beginning = file.read(MAX_FILE_BYTES)
    return not beginning.strip() or _looks_like_html(path, beginning)
