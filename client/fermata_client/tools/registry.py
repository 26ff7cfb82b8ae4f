"""Every tool of a site's editor by its names, and what a file answers."""

from fermata_client.tools import (
    apply_css,
    classes,
    code_assets,
    design_tokens,
    node_properties,
    node_structure,
    page,
    static_render,
)
from fermata_client.tools.guards import ToolFunction, guard_against_code
from fermata_client.tools.restore import RESTORE_TOOL, restore_edits

READ_TOOLS: dict[str, ToolFunction] = {
    "read_document": page.read_document,
    "getNodeHtml": page.get_node_html,
    "open_document": page.open_document,
    "list_code_assets": code_assets.list_code_assets,
    "read_code_asset": code_assets.read_code_asset,
    "inspect_code_runtime": code_assets.inspect_code_runtime,
    "render_snapshot": static_render.render_snapshot,
}
_WITHOUT_CODE: dict[str, ToolFunction] = {
    "insertHtml": page.insert_html,
    "replaceNodeHtml": page.replace_node_html,
    "deleteNode": page.delete_node,
    "updateNodeProps": node_properties.update_node_props,
    "moveNode": node_structure.move_node,
    "duplicateNode": node_structure.duplicate_node,
    "applyCss": apply_css.apply_css,
    "assignClass": classes.assign_class,
    "removeClass": classes.remove_class,
    "renamePage": page.rename_page,
    "set_color_tokens": design_tokens.set_color_tokens,
    "set_font_tokens": design_tokens.set_font_tokens,
    "set_type_scale": design_tokens.set_type_scale,
    "set_spacing_scale": design_tokens.set_spacing_scale,
}
WRITE_TOOLS: dict[str, ToolFunction] = {
    **{name: guard_against_code(tool) for name, tool in _WITHOUT_CODE.items()},
    "write_code_asset": code_assets.write_code_asset,
    "patch_code_asset": code_assets.patch_code_asset,
    RESTORE_TOOL: restore_edits,
}
REFUSED_TOOLS = page.UNSUPPORTED_TOOLS


def prefixed_tool_name(name: str) -> str:
    """The newer name of a tool: `insertHtml` is `site_insert_html`."""
    return "site_" + "".join("_" + letter.lower() if letter.isupper() else letter for letter in name)


UNPREFIXED_NAME_BY_PREFIXED = {prefixed_tool_name(name): name for name in (*READ_TOOLS, *WRITE_TOOLS, *REFUSED_TOOLS)}


def unprefixed_tool_name(name: str) -> str:
    return UNPREFIXED_NAME_BY_PREFIXED.get(name, name)
