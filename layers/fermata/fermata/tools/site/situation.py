"""One line about what the user sees now in the site editor."""

from collections.abc import Iterable
from typing import Any

from pydantic import ValidationError

from fermata.tools.prompt_text import join_first_items, to_single_line
from fermata.tools.site.design_tokens.colors import assign_slugs, to_hsla_text
from fermata.tools.site.design_tokens.fonts import describe_fonts
from fermata.tools.site.design_tokens.listing import DesignSettings, read_design_settings
from fermata.tools.site.design_tokens.scales import SPACING_SCALE, TYPE_SCALE, describe_scales, format_step_variable
from fermata.tools.site.documents import describe_documents
from fermata.tools.site.snapshot import SiteEditorView, SnapshotPage, SnapshotSite
from fermata.tools.tool import ToolFailure
from fermata.tools.tool_names import ToolNaming, format_tool_name

_MOST_DOCUMENTS, _MOST_COLORS, _MOST_STEPS, _MOST_FONTS = 24, 30, 16, 20


def situation(snapshot: Any, naming: ToolNaming) -> str:
    """A snapshot that cannot be read is replaced by an empty one; the turn goes on."""
    try:
        view = SiteEditorView.from_wire(snapshot)
    except ValidationError:
        view, snapshot = SiteEditorView(page=SnapshotPage(id="", title="Untitled"), site=SnapshotSite()), {"site": {}}
    return " · ".join([*_where(view), _documents(view), _pages(view), _tokens(snapshot, naming)])


def _where(view: SiteEditorView) -> Iterable[str]:
    current = view.current_document
    breakpoints = [_breakpoint(point.id, point.width, point.media_query) for point in view.site.breakpoints]
    yield f'Page: "{to_single_line(view.page.title)}"'
    if current:
        yield f"current document: {current.type}:{to_single_line(current.id)}"
    yield f"root: {to_single_line(view.page.root_node_id) or '(empty)'}"
    yield f"selected: {to_single_line(view.selected_node_id or '') or 'none'}"
    yield f"active breakpoint: {to_single_line(view.active_breakpoint_id) or '(none)'}"
    yield f"all breakpoints: [{', '.join(breakpoints) or '(none)'}]"


def _breakpoint(name: str, width: float, media_query: str) -> str:
    return f"{to_single_line(name)}@{width:g}px" + (f":{to_single_line(media_query)}" if media_query else "")


def _documents(view: SiteEditorView) -> str:
    described = describe_documents(view.site, view.page.id, view.current_document)
    return f"Documents: [{join_first_items([_document(one) for one in described], _MOST_DOCUMENTS)}]"


def _document(described: dict[str, Any]) -> str:
    ref, marks = described["document"], ["current"] if described["current"] else []
    marks += ["active-page"] if described["active"] else []
    marks += [f"root={to_single_line(described['rootNodeId']) or '(empty)'}"]
    label = f'{ref["type"]}:{to_single_line(ref["id"])}="{to_single_line(described["title"])}"'
    return f"{label} ({', '.join(marks)}; {to_single_line(described['summary'])})"


def _pages(view: SiteEditorView) -> str:
    return f"Pages: [{', '.join(_page(page, page.id == view.page.id) for page in view.site.pages) or '(none)'}]"


def _page(page: SnapshotPage, is_active: bool) -> str:
    target = page.template.target if page.template else None
    kind = (",".join(target.table_slugs) if target.kind == "postTypes" else target.kind) if target else ""
    active, template = " (active)" if is_active else "", f" [template:{to_single_line(kind)}]" if kind else ""
    return f"{to_single_line(page.id)}={to_single_line(page.slug) or '(no-slug)'}{active}{template}"


def _tokens(snapshot: Any, names: ToolNaming) -> str:
    """A digest: names and base values only, the rest is for the token tool."""
    try:
        parts = list(_families(read_design_settings(snapshot)))
    except ToolFailure:
        return "Tokens: (unreadable)"
    return f"Tokens — {'; '.join(parts)}" if parts else _no_tokens(names)


def _families(design: DesignSettings) -> Iterable[str]:
    framework = design.framework
    colors = [
        f"{slug}={to_single_line(to_hsla_text(token.light_value))}" for slug, token in assign_slugs(framework.colors)
    ]
    fonts = [
        f"{font['cssVar']}→{to_single_line(font['family'] or font['stack'])}" for font in describe_fonts(design.fonts)
    ]
    if colors:
        yield f"colors: [{join_first_items(colors, _MOST_COLORS)}]"
    for group in describe_scales(TYPE_SCALE, framework.typography, framework.preferences):
        yield _scale("type", group)
    for group in describe_scales(SPACING_SCALE, framework.spacing, framework.preferences):
        yield _scale("spacing", group)
    if fonts:
        yield f"fonts: [{join_first_items(fonts, _MOST_FONTS)}]"


def _scale(kind: str, group: dict[str, Any]) -> str:
    """Sizes set by hand have names of their own instead of a pattern."""
    naming, steps = group["namingConvention"], group["steps"]
    if any(step["cssVar"] != format_step_variable(naming, step["step"]) for step in steps):
        return f"{kind}: [{join_first_items([to_single_line(step['cssVar']) for step in steps], _MOST_STEPS)}]"
    names = join_first_items([to_single_line(step["step"]) for step in steps], _MOST_STEPS)
    return f"{kind} {to_single_line(format_step_variable(naming, '*'))}: [{names}]"


def _no_tokens(names: ToolNaming) -> str:
    tool = format_tool_name("site", "set_color_tokens", names)
    return f"Tokens: (none — no design system yet; if you have {tool}, establish one first)"
