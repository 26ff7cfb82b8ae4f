"""The code tools: list, read, write and patch what `assets` finds, and say what the page runs."""

import json
from html import escape
from typing import Any
from urllib.parse import quote

from fermata_client.css.parser import check_balanced
from fermata_client.document.code_assets import (
    CodeAsset,
    check_new_path,
    describe_loading,
    find_code_asset,
    find_code_assets,
)
from fermata_client.document.html_document import HtmlDocument
from fermata_client.html.errors import EditError
from fermata_client.html.fragment import fragment_from_page
from fermata_client.html.indentation import detect_newline
from fermata_client.html.insertion import insertion_splice
from fermata_client.html.linked_files import is_script, is_stylesheet, link_address, linked_file_paths
from fermata_client.html.parser import UTF8_BOM
from fermata_client.html.splices import Splice
from fermata_client.html.tree import Element
from fermata_client.tools.arguments import (
    ToolArguments,
    optional_integer,
    optional_object,
    optional_text,
    required_objects,
    required_text,
)
from fermata_client.tools.guards import check_same_end

DEFAULT_ASSET_PART_CHARS = 12_000
MAX_ASSET_PART_CHARS = 100_000
MAX_ASSET_BYTES = 1_000_000
ASSET_TYPES = ("script", "style")
BODY_END_PLACEMENTS = ("body", "body-end", "bodyEnd", "footer")


def list_code_assets(document: HtmlDocument, given: ToolArguments) -> tuple[HtmlDocument, Any]:
    kind = _kind(given) if given.get("type") is not None else ""
    return document, {"assets": [one.to_summary() for one in find_code_assets(document) if kind in ("", one.type)]}


def read_code_asset(document: HtmlDocument, given: ToolArguments) -> tuple[HtmlDocument, Any]:
    found = _named(document, given)
    size, part = (
        optional_integer(given, "maxChars", 1, MAX_ASSET_PART_CHARS) or DEFAULT_ASSET_PART_CHARS,
        optional_integer(given, "part", 1) or 1,
    )
    total = max(1, -(-len(found.text) // size))
    if part > total:
        raise EditError(f"There is no part {part}; {found.path} has {total}.")
    start, end = (part - 1) * size, min(part * size, len(found.text))
    info = {"part": part, "totalParts": total, "nextPart": part + 1 if part < total else None, "maxChars": size}
    info |= {"start": start, "end": end, "totalChars": len(found.text)}
    told = {name: found.to_summary()[name] for name in ("fileId", "path", "type", "hash", "runtime")}
    return document, {**told, "content": found.text[start:end], "pageInfo": info}


def write_code_asset(document: HtmlDocument, given: ToolArguments) -> tuple[HtmlDocument, Any]:
    path, kind = required_text(given, "path"), _kind(given)
    content = _content(given)
    there = next((one for one in find_code_assets(document) if path in (one.path, one.file_id)), None)
    if there is None:
        path = check_new_path(path, kind)
        there = next((one for one in find_code_assets(document) if one.path == path), None)
    if there is not None and there.type != kind:
        raise EditError(f"{there.path} is a {there.type}, not a {kind}.")
    if there is not None:
        around = there.content if b"\n" in there.content else document.source
        written = _put(document, there, content.replace("\n", detect_newline(around).decode()))
        return written, {**find_code_asset(written, there.path).to_summary(), "action": "updated"}
    _check(kind, content, inline=False)
    written = document.with_file(path, content.encode("utf-8", "replace"))
    written = written if path in linked_file_paths(document.tree) else _loading(written, path, kind, given)
    return written, {**find_code_asset(written, path).to_summary(), "action": "created"}


def patch_code_asset(document: HtmlDocument, given: ToolArguments) -> tuple[HtmlDocument, Any]:
    found = _named(document, given)
    if required_text(given, "expectedHash") != found.hash:
        raise EditError(f"{found.path} is not what you read: its hash is {found.hash} now. Read it again first.")
    content, count = found.text, 0
    for number, one in enumerate(required_objects(given, "replacements"), 1):
        content, times = _replaced(found.path, content, number, one)
        count += times
    written = _put(document, found, content)
    return written, {**find_code_asset(written, found.path).to_summary(), "replacements": count}


def inspect_code_runtime(document: HtmlDocument, given: ToolArguments) -> tuple[HtmlDocument, Any]:
    """What the page loads, in its order, also what cannot be edited here."""
    here = require_current_document(document, given)
    known = {one.element.uid: one for one in find_code_assets(document) if one.element}
    found: dict[str, list[dict[str, Any]]] = {kind: [] for kind in ASSET_TYPES}
    for element in document.tree.elements:
        if is_script(element) or is_stylesheet(element):
            kind = "script" if element.tag == "script" else "style"
            found[kind].append(_loaded(element, known.get(element.uid)))
    return document, {"pageId": document.id, "document": here, "scripts": found["script"], "styles": found["style"]}


def require_current_document(document: HtmlDocument, given: ToolArguments) -> dict[str, str]:
    """The only document there is; CannotDo when another one is asked for."""
    here = {"type": "page", "id": document.id}
    wanted = given.get("document")
    if wanted is not None and wanted != here:
        raise EditError(f"There is only one document here: {json.dumps(here)}.")
    return here


def _loaded(element: Element, known: CodeAsset | None) -> dict[str, Any]:
    if known is not None:
        return {"fileId": known.file_id, "path": known.path, "editable": True, **describe_loading(element)}
    return {"path": link_address(element) or "", "editable": False, **describe_loading(element)}


def _named(document: HtmlDocument, given: ToolArguments) -> CodeAsset:
    name = optional_text(given, "fileId") or optional_text(given, "path")
    if not name:
        raise EditError("Name the asset by `path` or `fileId`; list_code_assets tells both.")
    return find_code_asset(document, name)


def _kind(given: ToolArguments) -> str:
    kind = given.get("type")
    if kind not in ASSET_TYPES:
        raise EditError("`type` is `script` or `style`.")
    return str(kind)


def _content(given: ToolArguments) -> str:
    content = given.get("content")
    if not isinstance(content, str):
        raise EditError("`content` must be a text.")
    return content.replace("\r\n", "\n")


def _replaced(path: str, content: str, number: int, one: ToolArguments) -> tuple[str, int]:
    old, new = required_text(one, "oldText"), one.get("newText")
    if not isinstance(new, str):
        raise EditError(f"`newText` of replacement {number} must be a text.")
    if "\r\n" in content:  # a model writes plain line ends
        old, new = (text.replace("\r\n", "\n").replace("\n", "\r\n") for text in (old, new))
    times = content.count(old)
    if times == 0:
        raise EditError(f"The old text of replacement {number} is not in {path}. Nothing was replaced.")
    if times > 1 and one.get("replaceAll") is not True:
        raise EditError(
            f"The old text of replacement {number} stands {times} times in {path}. Take more of what is around it, or "
            "say replaceAll. Nothing was replaced."
        )
    return content.replace(old, new), times


def _put(document: HtmlDocument, found: CodeAsset, content: str) -> HtmlDocument:
    """The document with other content of the asset."""
    _check(found.type, content, inline=not found.is_file)
    new = content.encode("utf-8", "replace")
    if found.content.startswith(UTF8_BOM) and not new.startswith(UTF8_BOM):
        new = UTF8_BOM + new
    if found.is_file:
        return document.with_file(found.path, new)
    assert found.element is not None
    if new == found.content:
        return document
    edited = document.with_splices([Splice(found.element.inner_start, found.element.inner_end, new)], found.element)
    check_same_end(document, edited, found.type, found.text, content)
    return edited


def _check(kind: str, content: str, *, inline: bool) -> None:
    if len(content.encode("utf-8", "replace")) > MAX_ASSET_BYTES:
        raise EditError(f"A {kind} may have {MAX_ASSET_BYTES // 1000} KB.")
    if kind == "style":
        check_balanced(content)
    elif inline and "</script" in content.lower():
        raise EditError("A script within a page must not contain </script>. Write it as <\\/script>.")


def _loading(document: HtmlDocument, path: str, kind: str, given: ToolArguments) -> HtmlDocument:
    """The page with an element that loads the new file, as `runtime` says; a script waits for the page unless told."""
    wanted, address = optional_object(given, "runtime"), escape(quote(path))
    if kind == "style":
        media = wanted.get("media")
        extra = f' media="{escape(media)}"' if isinstance(media, str) else ""
        return document.with_head_element("link", [f'<link rel="stylesheet" href="{address}"{extra}>'.encode()])
    line = f'<script src="{address}"{_timing(wanted)}></script>'.encode()
    body = document.tree.find_first("body")
    if body is None or wanted.get("placement") not in BODY_END_PLACEMENTS:
        return document.with_head_element("script", [line])
    return document.with_splices(
        [insertion_splice(document.source, body, None, fragment_from_page(line, 0, len(line), b""))], body
    )


def _timing(wanted: ToolArguments) -> str:
    if "module" in (wanted.get("format"), wanted.get("type")):
        return ' type="module"'
    return " async" if wanted.get("timing") == "async" or wanted.get("async") is True else " defer"
