"""The code tools: list, read, write and patch what `assets` finds, and say what the page runs."""

import json
from html import escape
from typing import Any
from urllib.parse import quote

from fermata_client.editing import given as read
from fermata_client.editing.assets import Asset, asset, assets, new_path, runtime
from fermata_client.editing.given import Given
from fermata_client.editing.guarding import refuse_moved_end
from fermata_client.html.cannot import CannotDo
from fermata_client.html.css_rules import check_balance
from fermata_client.html.layout import Splice, newline_of
from fermata_client.html.linking import is_script, is_sheet, local_paths, reference
from fermata_client.html.payload import own
from fermata_client.html.placing import insertion
from fermata_client.html.tree import BOM, Element
from fermata_client.html_document import HtmlDocument

PART_CHARS = 12_000
MOST_CHARS = 100_000
MOST_BYTES = 1_000_000
KINDS = ("script", "style")
AT_THE_END = ("body", "body-end", "bodyEnd", "footer")


def list_code_assets(document: HtmlDocument, given: Given) -> tuple[HtmlDocument, Any]:
    kind = _kind(given) if given.get("type") is not None else ""
    return document, {"assets": [one.summary() for one in assets(document) if kind in ("", one.type)]}


def read_code_asset(document: HtmlDocument, given: Given) -> tuple[HtmlDocument, Any]:
    found = _named(document, given)
    size, part = read.whole(given, "maxChars", 1, MOST_CHARS) or PART_CHARS, read.whole(given, "part", 1) or 1
    total = max(1, -(-len(found.text) // size))
    if part > total:
        raise CannotDo(f"There is no part {part}; {found.path} has {total}.")
    start, end = (part - 1) * size, min(part * size, len(found.text))
    info = {"part": part, "totalParts": total, "nextPart": part + 1 if part < total else None, "maxChars": size}
    info |= {"start": start, "end": end, "totalChars": len(found.text)}
    told = {name: found.summary()[name] for name in ("fileId", "path", "type", "hash", "runtime")}
    return document, {**told, "content": found.text[start:end], "pageInfo": info}


def write_code_asset(document: HtmlDocument, given: Given) -> tuple[HtmlDocument, Any]:
    path, kind = read.text(given, "path"), _kind(given)
    content = _content(given)
    there = next((one for one in assets(document) if path in (one.path, one.file_id)), None)
    if there is None:
        path = new_path(path, kind)
        there = next((one for one in assets(document) if one.path == path), None)
    if there is not None and there.type != kind:
        raise CannotDo(f"{there.path} is a {there.type}, not a {kind}.")
    if there is not None:
        around = there.content if b"\n" in there.content else document.source
        written = _put(document, there, content.replace("\n", newline_of(around).decode()))
        return written, {**asset(written, there.path).summary(), "action": "updated"}
    _check(kind, content, inline=False)
    written = document.with_file(path, content.encode("utf-8", "replace"))
    written = written if path in local_paths(document.page) else _loading(written, path, kind, given)
    return written, {**asset(written, path).summary(), "action": "created"}


def patch_code_asset(document: HtmlDocument, given: Given) -> tuple[HtmlDocument, Any]:
    found = _named(document, given)
    if read.text(given, "expectedHash") != found.hash:
        raise CannotDo(f"{found.path} is not what you read: its hash is {found.hash} now. Read it again first.")
    content, count = found.text, 0
    for number, one in enumerate(read.objects(given, "replacements"), 1):
        content, times = _replaced(found.path, content, number, one)
        count += times
    written = _put(document, found, content)
    return written, {**asset(written, found.path).summary(), "replacements": count}


def inspect_code_runtime(document: HtmlDocument, given: Given) -> tuple[HtmlDocument, Any]:
    """What the page loads, in its order, also what cannot be edited here."""
    here = one_document(document, given)
    known = {one.element.uid: one for one in assets(document) if one.element}
    found: dict[str, list[dict[str, Any]]] = {kind: [] for kind in KINDS}
    for element in document.page.elements:
        if is_script(element) or is_sheet(element):
            kind = "script" if element.tag == "script" else "style"
            found[kind].append(_loaded(element, known.get(element.uid)))
    return document, {"pageId": document.id, "document": here, "scripts": found["script"], "styles": found["style"]}


def one_document(document: HtmlDocument, given: Given) -> dict[str, str]:
    """The only document there is; CannotDo when another one is asked for."""
    here = {"type": "page", "id": document.id}
    wanted = given.get("document")
    if wanted is not None and wanted != here:
        raise CannotDo(f"There is only one document here: {json.dumps(here)}.")
    return here


def _loaded(element: Element, known: Asset | None) -> dict[str, Any]:
    if known is not None:
        return {"fileId": known.file_id, "path": known.path, "editable": True, **runtime(element)}
    return {"path": reference(element) or "", "editable": False, **runtime(element)}


def _named(document: HtmlDocument, given: Given) -> Asset:
    name = read.optional_text(given, "fileId") or read.optional_text(given, "path")
    if not name:
        raise CannotDo("Name the asset by `path` or `fileId`; list_code_assets tells both.")
    return asset(document, name)


def _kind(given: Given) -> str:
    kind = given.get("type")
    if kind not in KINDS:
        raise CannotDo("`type` is `script` or `style`.")
    return str(kind)


def _content(given: Given) -> str:
    content = given.get("content")
    if not isinstance(content, str):
        raise CannotDo("`content` must be a text.")
    return content.replace("\r\n", "\n")


def _replaced(path: str, content: str, number: int, one: Given) -> tuple[str, int]:
    old, new = read.text(one, "oldText"), one.get("newText")
    if not isinstance(new, str):
        raise CannotDo(f"`newText` of replacement {number} must be a text.")
    if "\r\n" in content:  # a model writes plain line ends
        old, new = (text.replace("\r\n", "\n").replace("\n", "\r\n") for text in (old, new))
    times = content.count(old)
    if times == 0:
        raise CannotDo(f"The old text of replacement {number} is not in {path}. Nothing was replaced.")
    if times > 1 and one.get("replaceAll") is not True:
        raise CannotDo(
            f"The old text of replacement {number} stands {times} times in {path}. Take more of what is around it, or "
            "say replaceAll. Nothing was replaced."
        )
    return content.replace(old, new), times


def _put(document: HtmlDocument, found: Asset, content: str) -> HtmlDocument:
    """The document with other content of the asset."""
    _check(found.type, content, inline=not found.is_file)
    new = content.encode("utf-8", "replace")
    if found.content.startswith(BOM) and not new.startswith(BOM):
        new = BOM + new
    if found.is_file:
        return document.with_file(found.path, new)
    assert found.element is not None
    if new == found.content:
        return document
    edited = document.edited([Splice(found.element.inner_start, found.element.inner_end, new)], found.element)
    refuse_moved_end(document, edited, found.type, found.text, content)
    return edited


def _check(kind: str, content: str, *, inline: bool) -> None:
    if len(content.encode("utf-8", "replace")) > MOST_BYTES:
        raise CannotDo(f"A {kind} may have {MOST_BYTES // 1000} KB.")
    if kind == "style":
        check_balance(content)
    elif inline and "</script" in content.lower():
        raise CannotDo("A script within a page must not contain </script>. Write it as <\\/script>.")


def _loading(document: HtmlDocument, path: str, kind: str, given: Given) -> HtmlDocument:
    """The page with an element that loads the new file, as `runtime` says; a script waits for the page unless told."""
    wanted, address = read.members(given, "runtime"), escape(quote(path))
    if kind == "style":
        media = wanted.get("media")
        extra = f' media="{escape(media)}"' if isinstance(media, str) else ""
        return document.with_in_head("link", [f'<link rel="stylesheet" href="{address}"{extra}>'.encode()])
    line = f'<script src="{address}"{_timing(wanted)}></script>'.encode()
    body = document.page.first("body")
    if body is None or wanted.get("placement") not in AT_THE_END:
        return document.with_in_head("script", [line])
    return document.edited([insertion(document.source, body, None, own(line, 0, len(line), b""))], body)


def _timing(wanted: Given) -> str:
    if "module" in (wanted.get("format"), wanted.get("type")):
        return ' type="module"'
    return " async" if wanted.get("timing") == "async" or wanted.get("async") is True else " defer"
