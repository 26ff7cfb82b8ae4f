"""Every tool of a site's editor by its names, and what a file answers."""

from fermata_client.editing import classes, code, pages, properties, report, structure, styling, tokens
from fermata_client.editing.guarding import Tool, guarded
from fermata_client.editing.restoring import RESTORE, restore

READS: dict[str, Tool] = {
    "read_document": pages.read_document,
    "getNodeHtml": pages.node_html,
    "open_document": pages.open_document,
    "list_code_assets": code.list_code_assets,
    "read_code_asset": code.read_code_asset,
    "inspect_code_runtime": code.inspect_code_runtime,
    "render_snapshot": report.render_snapshot,
}
_WITHOUT_CODE: dict[str, Tool] = {
    "insertHtml": pages.insert_html,
    "replaceNodeHtml": pages.replace_node_html,
    "deleteNode": pages.delete_node,
    "updateNodeProps": properties.update_props,
    "moveNode": structure.move_node,
    "duplicateNode": structure.duplicate_node,
    "applyCss": styling.apply_css,
    "assignClass": classes.assign_class,
    "removeClass": classes.remove_class,
    "renamePage": pages.rename_page,
    "set_color_tokens": tokens.set_color_tokens,
    "set_font_tokens": tokens.set_font_tokens,
    "set_type_scale": tokens.set_type_scale,
    "set_spacing_scale": tokens.set_spacing_scale,
}
WRITES: dict[str, Tool] = {
    **{name: guarded(tool) for name, tool in _WITHOUT_CODE.items()},
    "write_code_asset": code.write_code_asset,
    "patch_code_asset": code.patch_code_asset,
    RESTORE: restore,
}
REFUSED = pages.REFUSED


def prefixed(name: str) -> str:
    """The newer name of a tool: `insertHtml` is `site_insert_html`."""
    return "site_" + "".join("_" + letter.lower() if letter.isupper() else letter for letter in name)


BY_NEWER_NAME = {prefixed(name): name for name in (*READS, *WRITES, *REFUSED)}


def first_name(name: str) -> str:
    return BY_NEWER_NAME.get(name, name)
