"""List the editable documents of a site: pages and templates in the order of the site, then visual components."""

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
    part = read_snapshot_part(snapshot, DocumentsPart)
    current = part.current_document
    documents = describe_documents(part.site, part.page.id, current)
    return {**({"currentDocument": current.to_wire()} if current else {}), "documents": documents}


def describe_documents(site: SiteDocuments, active_page_id: str, current: DocumentRef | None) -> list[dict[str, Any]]:
    """Describe each document of a site.

    Args:
        site: The site's pages and components.
        active_page_id: The page that the editor has open.
        current: The document on the canvas.
    """
    pages = [_describe_page(page, active_page_id, current) for page in site.pages]
    return pages + [_describe_component(component, current) for component in site.visual_components]


def _describe_page(page: SnapshotPage, active_page_id: str, current: DocumentRef | None) -> dict[str, Any]:
    ref = DocumentRef(type="template" if page.template else "page", id=page.id)
    description = {
        "document": ref.to_wire(),
        "title": page.title,
        "slug": page.slug,
        "rootNodeId": page.root_node_id,
        "active": page.id == active_page_id,
        "current": ref == current,
        "isHomepage": page.slug == HOMEPAGE_SLUG,
        "summary": _summarize(page),
    }
    if page.template:
        description["template"] = {
            "target": _describe_target(page),
            "priority": _drop_zero_fraction(page.template.priority),
        }
    return description


def _describe_component(component: VisualComponent, current: DocumentRef | None) -> dict[str, Any]:
    ref = DocumentRef(type="visualComponent", id=component.id)
    return {
        "document": ref.to_wire(),
        "title": component.name,
        "rootNodeId": component.tree.root_node_id,
        "active": False,
        "current": ref == current,
        "summary": "Visual component definition",
    }


def _summarize(page: SnapshotPage) -> str:
    if page.template is None:
        return "Homepage" if page.slug == HOMEPAGE_SLUG else f"Page /{page.slug}"
    match page.template.target.kind:
        case "everywhere":
            return "Everywhere template wrapping all pages"
        case "notFound":
            return "404 template"
        case "postTypes":
            return f"Post type template for {', '.join(page.template.target.table_slugs)}"


def _describe_target(page: SnapshotPage) -> dict[str, Any]:
    """Describe what a template is for, as the editor posted it; only post types have table slugs."""
    if page.template is None:
        return {}
    target = page.template.target
    slugs = {"tableSlugs": list(target.table_slugs)} if target.kind == "postTypes" else {}
    return {"kind": target.kind, **slugs}


def _drop_zero_fraction(value: float) -> float:
    return int(value) if value.is_integer() else value
