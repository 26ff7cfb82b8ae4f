"""Work on code: list, read, write and patch scripts and style sheets, and inspect what the page loads."""

from html import escape
from urllib.parse import quote

from fermata_client.css.parser import check_balanced
from fermata_client.document.code_assets import (
    AssetType,
    CodeAsset,
    check_new_path,
    describe_loading,
    find_code_asset,
    find_code_assets,
)
from fermata_client.document.html_document import HtmlDocument
from fermata_client.html.edit_error import EditError
from fermata_client.html.fragment import fragment_from_page
from fermata_client.html.indentation import detect_newline
from fermata_client.html.insertion import insertion_splice
from fermata_client.html.linked_files import is_script, is_stylesheet, link_address, linked_file_paths
from fermata_client.html.markdown_fences import strip_element_tags, strip_markdown_fence
from fermata_client.html.splices import Splice
from fermata_client.html.template_preamble import UTF8_BOM
from fermata_client.html.tree import Element
from fermata_client.service.json_types import JsonObject
from fermata_client.tools.arguments import (
    ToolArguments,
    optional_integer,
    optional_object,
    optional_text,
    required_objects,
    required_text,
)
from fermata_client.tools.guard_against_code import check_no_new_server_code, check_same_end
from fermata_client.tools.page_html import require_current_document
from fermata_client.tools.tool_function import ToolEffectWithData

DEFAULT_ASSET_PART_CHARS = 12_000
MAX_ASSET_PART_CHARS = 100_000
MAX_ASSET_BYTES = 1_000_000
BODY_END_PLACEMENTS = ("body", "body-end", "bodyEnd", "footer")
READ_SUMMARY_MEMBERS = ("fileId", "path", "type", "hash", "runtime")


def list_code_assets(document: HtmlDocument, arguments: ToolArguments) -> ToolEffectWithData:
    asset_type = _asset_type(arguments) if arguments.get("type") is not None else None
    assets = [asset for asset in find_code_assets(document) if asset_type in (None, asset.type)]
    return document, {"assets": [asset.to_summary() for asset in assets]}


def read_code_asset(document: HtmlDocument, arguments: ToolArguments) -> ToolEffectWithData:
    asset = _named_asset(document, arguments)
    max_chars = optional_integer(arguments, "maxChars", 1, MAX_ASSET_PART_CHARS) or DEFAULT_ASSET_PART_CHARS
    part_number = optional_integer(arguments, "part", 1) or 1
    part_count = max(1, -(-len(asset.text) // max_chars))
    if part_number > part_count:
        raise EditError(f"There is no part {part_number}; {asset.path} has {part_count}.")
    start, end = (part_number - 1) * max_chars, min(part_number * max_chars, len(asset.text))
    page_info = {
        "part": part_number,
        "totalParts": part_count,
        "nextPart": part_number + 1 if part_number < part_count else None,
        "maxChars": max_chars,
        "start": start,
        "end": end,
        "totalChars": len(asset.text),
    }
    summary = asset.to_summary()
    members = {name: summary[name] for name in READ_SUMMARY_MEMBERS}
    return document, {**members, "content": asset.text[start:end], "pageInfo": page_info}


def write_code_asset(document: HtmlDocument, arguments: ToolArguments) -> ToolEffectWithData:
    """Replace the content of a script or style sheet, or create a file and an element that loads it."""
    path = required_text(arguments, "path")
    asset_type = _asset_type(arguments)
    content = _content_argument(arguments, asset_type)
    assets = find_code_assets(document)
    existing = next((asset for asset in assets if path in (asset.path, asset.file_id)), None)
    if existing is None:
        path = check_new_path(path, asset_type)
        existing = next((asset for asset in assets if asset.path == path), None)
    if existing is None:
        edited = _create_file(document, path, asset_type, content, arguments)
        return edited, {**find_code_asset(edited, path).to_summary(), "action": "created"}
    if existing.type != asset_type:
        raise EditError(f"{existing.path} is a {existing.type}, not a {asset_type}.")
    newline_source = existing.content if b"\n" in existing.content else document.source
    edited = _set_content(document, existing, content.replace("\n", detect_newline(newline_source).decode()))
    return edited, {**find_code_asset(edited, existing.path).to_summary(), "action": "updated"}


def patch_code_asset(document: HtmlDocument, arguments: ToolArguments) -> ToolEffectWithData:
    asset = _named_asset(document, arguments)
    if required_text(arguments, "expectedHash") != asset.hash:
        raise EditError(f"{asset.path} is not what you read: its hash is {asset.hash} now. Read it again first.")
    content, total_count = asset.text, 0
    for number, replacement in enumerate(required_objects(arguments, "replacements"), 1):
        content, count = _apply_replacement(asset.path, content, number, replacement)
        total_count += count
    edited = _set_content(document, asset, content)
    return edited, {**find_code_asset(edited, asset.path).to_summary(), "replacements": total_count}


def inspect_code_runtime(document: HtmlDocument, arguments: ToolArguments) -> ToolEffectWithData:
    """List what the page loads, in its order, also what cannot be edited here."""
    current = require_current_document(document, arguments)
    asset_by_uid = {asset.element.uid: asset for asset in find_code_assets(document) if asset.element}
    scripts: list[JsonObject] = []
    styles: list[JsonObject] = []
    for element in document.tree.elements:
        if is_script(element) or is_stylesheet(element):
            loaded = _describe_loaded(element, asset_by_uid.get(element.uid))
            (scripts if element.tag == "script" else styles).append(loaded)
    return document, {"pageId": document.id, "document": current, "scripts": scripts, "styles": styles}


def _describe_loaded(element: Element, asset: CodeAsset | None) -> JsonObject:
    if asset is not None:
        return {"fileId": asset.file_id, "path": asset.path, "editable": True, **describe_loading(element)}
    return {"path": link_address(element) or "", "editable": False, **describe_loading(element)}


def _named_asset(document: HtmlDocument, arguments: ToolArguments) -> CodeAsset:
    name = optional_text(arguments, "fileId") or optional_text(arguments, "path")
    if not name:
        raise EditError("Name the asset by `path` or `fileId`; list_code_assets lists both.")
    return find_code_asset(document, name)


def _asset_type(arguments: ToolArguments) -> AssetType:
    match arguments.get("type"):
        case "script":
            return "script"
        case "style":
            return "style"
        case _:
            raise EditError("`type` is `script` or `style`.")


def _content_argument(arguments: ToolArguments, asset_type: AssetType) -> str:
    """Return the content, which may be empty, with LF line ends."""
    content = arguments.get("content")
    if not isinstance(content, str):
        raise EditError("`content` must be a text.")
    return strip_element_tags(strip_markdown_fence(content.replace("\r\n", "\n")), asset_type)


def _apply_replacement(path: str, content: str, number: int, replacement: ToolArguments) -> tuple[str, int]:
    """Apply one replacement of a patch, and return the content and the number of places."""
    old_text, new_text = required_text(replacement, "oldText"), replacement.get("newText")
    if not isinstance(new_text, str):
        raise EditError(f"`newText` of replacement {number} must be a text.")
    new_text = strip_markdown_fence(new_text) if "`" not in old_text else new_text
    if "\r\n" in content:  # the model writes LF
        old_text, new_text = (text.replace("\r\n", "\n").replace("\n", "\r\n") for text in (old_text, new_text))
    count = content.count(old_text)
    if count == 0:
        raise EditError(f"The old text of replacement {number} is not in {path}. Nothing was replaced.")
    if count > 1 and replacement.get("replaceAll") is not True:
        raise EditError(
            f"The old text of replacement {number} occurs {count} times in {path}. Include more of the "
            "text around it, or set replaceAll. Nothing was replaced."
        )
    return content.replace(old_text, new_text), count


def _set_content(document: HtmlDocument, asset: CodeAsset, text: str) -> HtmlDocument:
    _check_content(asset.type, text, is_inline=not asset.is_file)
    content = text.encode("utf-8", "replace")
    if asset.content.startswith(UTF8_BOM) and not content.startswith(UTF8_BOM):
        content = UTF8_BOM + content
    if asset.is_file:
        return document.with_file(asset.path, content)
    if content == asset.content:
        return document
    element = asset.element
    assert element is not None
    edited = document.with_splices([Splice(element.inner_start, element.inner_end, content)], element)
    check_same_end(document, edited, asset.type, asset.text, text)
    check_no_new_server_code(document, edited)
    return edited


def _check_content(asset_type: AssetType, text: str, *, is_inline: bool) -> None:
    if len(text.encode("utf-8", "replace")) > MAX_ASSET_BYTES:
        raise EditError(f"A {asset_type} may have {MAX_ASSET_BYTES // 1000} KB.")
    if asset_type == "style":
        check_balanced(text)
    elif is_inline and "</script" in text.lower():
        raise EditError("A script within a page must not contain </script>. Write it as <\\/script>.")


def _create_file(
    document: HtmlDocument, path: str, asset_type: AssetType, text: str, arguments: ToolArguments
) -> HtmlDocument:
    _check_content(asset_type, text, is_inline=False)
    edited = document.with_file(path, text.encode("utf-8", "replace"))
    if path in linked_file_paths(document.tree):
        return edited
    return _add_loading_element(edited, path, asset_type, optional_object(arguments, "runtime"))


def _add_loading_element(
    document: HtmlDocument, path: str, asset_type: AssetType, runtime: ToolArguments
) -> HtmlDocument:
    """Add an element that loads a file, as the argument `runtime` says. By default a script is deferred."""
    address = escape(quote(path))
    if asset_type == "style":
        media = runtime.get("media")
        media_attribute = f' media="{escape(media)}"' if isinstance(media, str) else ""
        link = f'<link rel="stylesheet" href="{address}"{media_attribute}>'
        return document.with_head_element("link", [link.encode()])
    script = f'<script src="{address}"{_timing_attribute(runtime)}></script>'.encode()
    body = document.tree.find_first("body")
    if body is None or runtime.get("placement") not in BODY_END_PLACEMENTS:
        return document.with_head_element("script", [script])
    fragment = fragment_from_page(script, 0, len(script), b"")
    return document.with_splices([insertion_splice(document.source, body, None, fragment)], body)


def _timing_attribute(runtime: ToolArguments) -> str:
    if "module" in (runtime.get("format"), runtime.get("type")):
        return ' type="module"'
    return " async" if runtime.get("timing") == "async" or runtime.get("async") is True else " defer"
