"""One line about what the user sees now in the site editor."""

from collections.abc import Iterable
from typing import Any

from pydantic import ValidationError

from fermata.tools.lines import few, one_line
from fermata.tools.names import Names, named
from fermata.tools.site.colors import resolved, slugged
from fermata.tools.site.documents import documents_of
from fermata.tools.site.fonts import describe_fonts
from fermata.tools.site.scales import SPACING, TYPOGRAPHY, describe_scales, variable
from fermata.tools.site.snapshot import Page, Site, View
from fermata.tools.site.tokens import DesignSettings, design_of
from fermata.tools.tool import ToolFailure

_MOST_DOCUMENTS, _MOST_COLORS, _MOST_STEPS, _MOST_FONTS = 24, 30, 16, 20


def situation(snapshot: Any, names: Names) -> str:
    """A snapshot that cannot be read is replaced by an empty one; the turn goes on."""
    try:
        view = View.read(snapshot)
    except ValidationError:
        view, snapshot = View(page=Page(id="", title="Untitled"), site=Site()), {"site": {}}
    return " · ".join([*_where(view), _documents(view), _pages(view), _tokens(snapshot, names)])


def _where(view: View) -> Iterable[str]:
    current = view.current_document
    breakpoints = [_breakpoint(point.id, point.width, point.media_query) for point in view.site.breakpoints]
    yield f'Page: "{one_line(view.page.title)}"'
    if current:
        yield f"current document: {current.type}:{one_line(current.id)}"
    yield f"root: {one_line(view.page.root_node_id) or '(empty)'}"
    yield f"selected: {one_line(view.selected_node_id or '') or 'none'}"
    yield f"active breakpoint: {one_line(view.active_breakpoint_id) or '(none)'}"
    yield f"all breakpoints: [{', '.join(breakpoints) or '(none)'}]"


def _breakpoint(name: str, width: float, media_query: str) -> str:
    return f"{one_line(name)}@{width:g}px" + (f":{one_line(media_query)}" if media_query else "")


def _documents(view: View) -> str:
    described = documents_of(view.site, view.page.id, view.current_document)
    return f"Documents: [{few([_document(one) for one in described], _MOST_DOCUMENTS)}]"


def _document(described: dict[str, Any]) -> str:
    ref, marks = described["document"], ["current"] if described["current"] else []
    marks += ["active-page"] if described["active"] else []
    marks += [f"root={one_line(described['rootNodeId']) or '(empty)'}"]
    label = f'{ref["type"]}:{one_line(ref["id"])}="{one_line(described["title"])}"'
    return f"{label} ({', '.join(marks)}; {one_line(described['summary'])})"


def _pages(view: View) -> str:
    return f"Pages: [{', '.join(_page(page, page.id == view.page.id) for page in view.site.pages) or '(none)'}]"


def _page(page: Page, is_active: bool) -> str:
    target = page.template.target if page.template else None
    kind = (",".join(target.table_slugs) if target.kind == "postTypes" else target.kind) if target else ""
    active, template = " (active)" if is_active else "", f" [template:{one_line(kind)}]" if kind else ""
    return f"{one_line(page.id)}={one_line(page.slug) or '(no-slug)'}{active}{template}"


def _tokens(snapshot: Any, names: Names) -> str:
    """A digest: names and base values only, the rest is for the token tool."""
    try:
        parts = list(_families(design_of(snapshot)))
    except ToolFailure:
        return "Tokens: (unreadable)"
    return f"Tokens — {'; '.join(parts)}" if parts else _no_tokens(names)


def _families(design: DesignSettings) -> Iterable[str]:
    framework = design.framework
    colors = [f"{slug}={one_line(resolved(token.light_value))}" for slug, token in slugged(framework.colors)]
    fonts = [f"{font['cssVar']}→{one_line(font['family'] or font['stack'])}" for font in describe_fonts(design.fonts)]
    if colors:
        yield f"colors: [{few(colors, _MOST_COLORS)}]"
    for group in describe_scales(TYPOGRAPHY, framework.typography, framework.preferences):
        yield _scale("type", group)
    for group in describe_scales(SPACING, framework.spacing, framework.preferences):
        yield _scale("spacing", group)
    if fonts:
        yield f"fonts: [{few(fonts, _MOST_FONTS)}]"


def _scale(kind: str, group: dict[str, Any]) -> str:
    """Sizes set by hand have names of their own instead of a pattern."""
    naming, steps = group["namingConvention"], group["steps"]
    if any(step["cssVar"] != variable(naming, step["step"]) for step in steps):
        return f"{kind}: [{few([one_line(step['cssVar']) for step in steps], _MOST_STEPS)}]"
    return f"{kind} {one_line(variable(naming, '*'))}: [{few([one_line(step['step']) for step in steps], _MOST_STEPS)}]"


def _no_tokens(names: Names) -> str:
    tool = named("site", "set_color_tokens", names)
    return f"Tokens: (none — no design system yet; if you have {tool}, establish one first)"
