"""The catalogue of editable documents: pages and templates in site order, then visual components."""

from typing import Any

from fermata.tools.site.snapshot import (
    DocumentRef,
    DocumentsPart,
    SiteDocuments,
    SnapshotPage,
    VisualComponent,
    read_snapshot_part,
)

HOMEPAGE_SLUG = "index"


def list_site_documents(snapshot: Any) -> dict[str, Any]:
    catalogue = read_snapshot_part(snapshot, DocumentsPart)
    current = catalogue.current_document
    documents = describe_documents(catalogue.site, catalogue.page.id, current)
    return {**({"currentDocument": current.to_wire()} if current else {}), "documents": documents}


def describe_documents(site: SiteDocuments, active_page: str, current: DocumentRef | None) -> list[dict[str, Any]]:
    pages = [_page(page, active_page, current) for page in site.pages]
    return pages + [_component(component, current) for component in site.visual_components]


def _page(page: SnapshotPage, active_page: str, current: DocumentRef | None) -> dict[str, Any]:
    ref = DocumentRef(type="template" if page.template else "page", id=page.id)
    shown = {
        "document": ref.to_wire(),
        "title": page.title,
        "slug": page.slug,
        "rootNodeId": page.root_node_id,
        "active": page.id == active_page,
        "current": ref == current,
        "isHomepage": page.slug == HOMEPAGE_SLUG,
        "summary": _summary(page),
    }
    if page.template:
        shown["template"] = {"target": describe_template_target(page), "priority": _number(page.template.priority)}
    return shown


def _component(component: VisualComponent, current: DocumentRef | None) -> dict[str, Any]:
    ref = DocumentRef(type="visualComponent", id=component.id)
    return {
        "document": ref.to_wire(),
        "title": component.name,
        "rootNodeId": component.tree.root_node_id,
        "active": False,
        "current": ref == current,
        "summary": "Visual component definition",
    }


def _summary(page: SnapshotPage) -> str:
    if page.template is None:
        return "Homepage" if page.slug == HOMEPAGE_SLUG else f"Page /{page.slug}"
    match page.template.target.kind:
        case "everywhere":
            return "Everywhere template wrapping all pages"
        case "notFound":
            return "404 template"
        case "postTypes":
            return f"Post type template for {', '.join(page.template.target.table_slugs)}"


def describe_template_target(page: SnapshotPage) -> dict[str, Any]:
    """A template's target as the editor posted it: only post types carry table slugs."""
    if page.template is None:
        return {}
    target = page.template.target
    slugs = {"tableSlugs": list(target.table_slugs)} if target.kind == "postTypes" else {}
    return {"kind": target.kind, **slugs}


def _number(value: float) -> float:
    return int(value) if value.is_integer() else value
