"""Summarise in one line what the user sees in the site editor: the part of the prompt that changes."""

from collections.abc import Iterable
from typing import Any

from pydantic import ValidationError

from fermata.agents.shorten_prompt_lines import join_first_items, to_single_line
from fermata.tools.site.design_tokens.colors import assign_slugs, to_hsla_text
from fermata.tools.site.design_tokens.fonts import describe_fonts
from fermata.tools.site.design_tokens.listing import DesignSettings, read_design_settings
from fermata.tools.site.design_tokens.scales import SPACING_SCALE, TYPE_SCALE, describe_scales, format_step_variable
from fermata.tools.site.document_listing import describe_documents
from fermata.tools.site.snapshot import SiteEditorView, SnapshotPage, SnapshotSite
from fermata.tools.tool import ToolFailure
from fermata.tools.tool_names import ToolNaming, format_tool_name

_MAX_DOCUMENTS = 24
_MAX_COLORS = 30
_MAX_STEPS = 16
_MAX_FONTS = 20


def situation(snapshot: Any, naming: ToolNaming) -> str:
    """Summarise a snapshot. One that cannot be read counts as empty, so that the turn goes on."""
    try:
        view = SiteEditorView.from_wire(snapshot)
    except ValidationError:
        view = SiteEditorView(page=SnapshotPage(id="", title="Untitled"), site=SnapshotSite())
        snapshot = {"site": {}}
    parts = [*_list_locations(view), _format_documents(view), _format_pages(view), _format_tokens(snapshot, naming)]
    return " · ".join(parts)


def _list_locations(view: SiteEditorView) -> Iterable[str]:
    document = view.current_document
    breakpoints = [_format_breakpoint(point.id, point.width, point.media_query) for point in view.site.breakpoints]
    yield f'Page: "{to_single_line(view.page.title)}"'
    if document:
        yield f"current document: {document.type}:{to_single_line(document.id)}"
    yield f"root: {to_single_line(view.page.root_node_id) or '(empty)'}"
    yield f"selected: {to_single_line(view.selected_node_id or '') or 'none'}"
    yield f"active breakpoint: {to_single_line(view.active_breakpoint_id) or '(none)'}"
    yield f"all breakpoints: [{', '.join(breakpoints) or '(none)'}]"


def _format_breakpoint(name: str, width: float, media_query: str) -> str:
    return f"{to_single_line(name)}@{width:g}px" + (f":{to_single_line(media_query)}" if media_query else "")


def _format_documents(view: SiteEditorView) -> str:
    documents = describe_documents(view.site, view.page.id, view.current_document)
    return f"Documents: [{join_first_items([_format_document(item) for item in documents], _MAX_DOCUMENTS)}]"


def _format_document(description: dict[str, Any]) -> str:
    ref = description["document"]
    marks = ["current"] if description["current"] else []
    marks += ["active-page"] if description["active"] else []
    marks += [f"root={to_single_line(description['rootNodeId']) or '(empty)'}"]
    label = f'{ref["type"]}:{to_single_line(ref["id"])}="{to_single_line(description["title"])}"'
    return f"{label} ({', '.join(marks)}; {to_single_line(description['summary'])})"


def _format_pages(view: SiteEditorView) -> str:
    pages = [_format_page(page, page.id == view.page.id) for page in view.site.pages]
    return f"Pages: [{', '.join(pages) or '(none)'}]"


def _format_page(page: SnapshotPage, is_active: bool) -> str:
    target = page.template.target if page.template else None
    kind = (",".join(target.table_slugs) if target.kind == "postTypes" else target.kind) if target else ""
    active_mark = " (active)" if is_active else ""
    template_mark = f" [template:{to_single_line(kind)}]" if kind else ""
    return f"{to_single_line(page.id)}={to_single_line(page.slug) or '(no-slug)'}{active_mark}{template_mark}"


def _format_tokens(snapshot: Any, naming: ToolNaming) -> str:
    """Format names and base values only; the model reads the rest with the token tool."""
    try:
        families = list(_list_token_families(read_design_settings(snapshot)))
    except ToolFailure:
        return "Tokens: (unreadable)"
    return f"Tokens — {'; '.join(families)}" if families else _format_missing_tokens(naming)


def _list_token_families(design: DesignSettings) -> Iterable[str]:
    framework = design.framework
    colors = [
        f"{slug}={to_single_line(to_hsla_text(token.light_value))}" for slug, token in assign_slugs(framework.colors)
    ]
    fonts = [
        f"{font['cssVar']}→{to_single_line(font['family'] or font['stack'])}" for font in describe_fonts(design.fonts)
    ]
    if colors:
        yield f"colors: [{join_first_items(colors, _MAX_COLORS)}]"
    for group in describe_scales(TYPE_SCALE, framework.typography, framework.preferences):
        yield _format_scale("type", group)
    for group in describe_scales(SPACING_SCALE, framework.spacing, framework.preferences):
        yield _format_scale("spacing", group)
    if fonts:
        yield f"fonts: [{join_first_items(fonts, _MAX_FONTS)}]"


def _format_scale(kind: str, group: dict[str, Any]) -> str:
    """Format a scale by the pattern of its variables; manual sizes have names of their own instead of a pattern."""
    convention = group["namingConvention"]
    steps = group["steps"]
    if any(step["cssVar"] != format_step_variable(convention, step["step"]) for step in steps):
        variables = [to_single_line(step["cssVar"]) for step in steps]
        return f"{kind}: [{join_first_items(variables, _MAX_STEPS)}]"
    labels = [to_single_line(step["step"]) for step in steps]
    pattern = to_single_line(format_step_variable(convention, "*"))
    return f"{kind} {pattern}: [{join_first_items(labels, _MAX_STEPS)}]"


def _format_missing_tokens(naming: ToolNaming) -> str:
    tool_name = format_tool_name("site", "set_color_tokens", naming)
    return f"Tokens: (none — no design system yet; if you have {tool_name}, establish one first)"
