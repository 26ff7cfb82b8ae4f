"""Read the parts of the site editor's snapshot that tools need. Unknown members are ignored.

The editor posts the snapshot unvalidated, so each reader takes only the part that it needs: a broken colour token does
not keep a model from listing documents.
"""

from typing import Any, Literal

from pydantic import Field, ValidationError

from fermata.tools.lenient_models import FiniteNumber, LenientModel, ModelT
from fermata.tools.schema.pydantic_errors import describe_pydantic_errors
from fermata.tools.tool import ToolFailure


class DocumentRef(LenientModel):
    type: Literal["page", "template", "visualComponent"]
    id: str


class TemplateTarget(LenientModel):
    kind: Literal["everywhere", "postTypes", "notFound"]
    table_slugs: tuple[str, ...] = ()


class PageTemplate(LenientModel):
    target: TemplateTarget
    priority: FiniteNumber = 100.0


class SnapshotPage(LenientModel):
    id: str
    title: str = ""
    slug: str = ""
    root_node_id: str = ""
    template: PageTemplate | None = None


class NodeTree(LenientModel):
    root_node_id: str = ""


class VisualComponent(LenientModel):
    id: str
    name: str = ""
    tree: NodeTree = Field(default_factory=NodeTree)


class Breakpoint(LenientModel):
    id: str
    width: FiniteNumber
    media_query: str = ""


class SiteDocuments(LenientModel):
    pages: tuple[SnapshotPage, ...] = ()
    visual_components: tuple[VisualComponent, ...] = ()


class SnapshotSite(SiteDocuments):
    breakpoints: tuple[Breakpoint, ...] = ()


class DocumentsPart(LenientModel):
    """The part that `list_documents` needs."""

    page: SnapshotPage
    current_document: DocumentRef | None = None
    site: SiteDocuments


class SiteEditorView(LenientModel):
    """The part that the situation needs: what the editor shows now."""

    page: SnapshotPage
    current_document: DocumentRef | None = None
    site: SnapshotSite
    selected_node_id: str | None = None
    active_breakpoint_id: str = ""


class SiteSettings(LenientModel):
    settings: dict[str, Any] = Field(default_factory=dict)


class DesignPart(LenientModel):
    """The part that `list_tokens` needs. The families of tokens are read one by one from `site.settings`."""

    site: SiteSettings


def read_snapshot_part(snapshot: Any, model: type[ModelT]) -> ModelT:
    """Read one part of a snapshot.

    Raises:
        ToolFailure: There is no snapshot, or the part cannot be read; the message names the wrong member.
    """
    if snapshot is None:
        raise ToolFailure("The editor sent no snapshot with this prompt, so there is nothing to list.")
    return read_snapshot_value(snapshot, model, "snapshot")


def read_snapshot_value(value: Any, model: type[ModelT], path: str) -> ModelT:
    """Read a value that is found at `path` of a snapshot; raises ToolFailure if it does not fit the model."""
    try:
        return model.from_wire(value)
    except ValidationError as error:
        first_error = describe_pydantic_errors(error, (path,))[0]
        raise ToolFailure(f"The editor's snapshot cannot be read: {first_error}.") from None
