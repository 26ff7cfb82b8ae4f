"""Map the names of a site editor's tools to how a file answers each of them (decision 0120)."""

from fermata_client.tools import (
    apply_css,
    classes,
    code_assets,
    move_and_duplicate,
    node_properties,
    page_html,
    static_render,
)
from fermata_client.tools.design_tokens.colors import set_color_tokens
from fermata_client.tools.design_tokens.fonts import set_font_tokens
from fermata_client.tools.design_tokens.scales import set_spacing_scale, set_type_scale
from fermata_client.tools.guard_against_code import guard_against_code
from fermata_client.tools.page_html import UNSUPPORTED_TOOLS
from fermata_client.tools.restore import RESTORE_TOOL, restore_edits
from fermata_client.tools.tool_function import ToolFunction
from fermata_client.tools.warnings import warn_of_new_problems

READ_TOOLS: dict[str, ToolFunction] = {
    "read_document": page_html.read_document,
    "getNodeHtml": page_html.get_node_html,
    "open_document": page_html.open_document,
    "list_code_assets": code_assets.list_code_assets,
    "read_code_asset": code_assets.read_code_asset,
    "inspect_code_runtime": code_assets.inspect_code_runtime,
    "render_snapshot": static_render.render_snapshot,
}
_MARKUP_TOOLS: dict[str, ToolFunction] = {
    "insertHtml": page_html.insert_html,
    "replaceNodeHtml": page_html.replace_node_html,
    "deleteNode": page_html.delete_node,
    "updateNodeProps": node_properties.update_node_props,
    "moveNode": move_and_duplicate.move_node,
    "duplicateNode": move_and_duplicate.duplicate_node,
    "applyCss": apply_css.apply_css,
    "assignClass": classes.assign_class,
    "removeClass": classes.remove_class,
    "renamePage": page_html.rename_page,
    "set_color_tokens": set_color_tokens,
    "set_font_tokens": set_font_tokens,
    "set_type_scale": set_type_scale,
    "set_spacing_scale": set_spacing_scale,
}
WRITE_TOOLS: dict[str, ToolFunction] = {
    **{name: warn_of_new_problems(guard_against_code(tool)) for name, tool in _MARKUP_TOOLS.items()},
    "write_code_asset": warn_of_new_problems(code_assets.write_code_asset),
    "patch_code_asset": warn_of_new_problems(code_assets.patch_code_asset),
    RESTORE_TOOL: restore_edits,
}


def prefixed_tool_name(name: str) -> str:
    """Return the name of a tool in newer editors (decision 0103): `insertHtml` is `site_insert_html` there."""
    return "site_" + "".join("_" + letter.lower() if letter.isupper() else letter for letter in name)


_TOOL_NAMES = (*READ_TOOLS, *WRITE_TOOLS, *UNSUPPORTED_TOOLS)
UNPREFIXED_NAME_BY_PREFIXED = {prefixed_tool_name(name): name for name in _TOOL_NAMES}


def unprefixed_tool_name(name: str) -> str:
    """Return the name of a tool in this registry; an unknown name as it is."""
    return UNPREFIXED_NAME_BY_PREFIXED.get(name, name)
