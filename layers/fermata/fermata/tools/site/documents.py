"""The catalogue of editable documents: pages and templates in site order, then visual components."""

from typing import Any

from fermata.tools.site.snapshot import Catalogue, DocumentRef, Documents, Page, VisualComponent, part_of

HOMEPAGE = "index"


def list_documents(snapshot: Any) -> dict[str, Any]:
    catalogue = part_of(snapshot, Catalogue)
    current = catalogue.current_document
    documents = documents_of(catalogue.site, catalogue.page.id, current)
    return {**({"currentDocument": current.wire()} if current else {}), "documents": documents}


def documents_of(site: Documents, active_page: str, current: DocumentRef | None) -> list[dict[str, Any]]:
    pages = [_page(page, active_page, current) for page in site.pages]
    return pages + [_component(component, current) for component in site.visual_components]


def _page(page: Page, active_page: str, current: DocumentRef | None) -> dict[str, Any]:
    ref = DocumentRef(type="template" if page.template else "page", id=page.id)
    shown = {
        "document": ref.wire(),
        "title": page.title,
        "slug": page.slug,
        "rootNodeId": page.root_node_id,
        "active": page.id == active_page,
        "current": ref == current,
        "isHomepage": page.slug == HOMEPAGE,
        "summary": _summary(page),
    }
    if page.template:
        shown["template"] = {"target": target_of(page), "priority": _number(page.template.priority)}
    return shown


def _component(component: VisualComponent, current: DocumentRef | None) -> dict[str, Any]:
    ref = DocumentRef(type="visualComponent", id=component.id)
    return {
        "document": ref.wire(),
        "title": component.name,
        "rootNodeId": component.tree.root_node_id,
        "active": False,
        "current": ref == current,
        "summary": "Visual component definition",
    }


def _summary(page: Page) -> str:
    if page.template is None:
        return "Homepage" if page.slug == HOMEPAGE else f"Page /{page.slug}"
    match page.template.target.kind:
        case "everywhere":
            return "Everywhere template wrapping all pages"
        case "notFound":
            return "404 template"
        case "postTypes":
            return f"Post type template for {', '.join(page.template.target.table_slugs)}"


def target_of(page: Page) -> dict[str, Any]:
    """A template's target as the editor posted it: only post types carry table slugs."""
    if page.template is None:
        return {}
    target = page.template.target
    slugs = {"tableSlugs": list(target.table_slugs)} if target.kind == "postTypes" else {}
    return {"kind": target.kind, **slugs}


def _number(value: float) -> float:
    return int(value) if value.is_integer() else value
