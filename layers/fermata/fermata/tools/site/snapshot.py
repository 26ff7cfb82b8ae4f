"""The parts of the editor's snapshot that we read. Everything else in it passes unseen.

The editor posts the snapshot raw and nothing has checked it, so each reader takes only the part it needs: a broken
colour token must not keep a model from listing documents.
"""

from typing import Annotated, Any, Literal, TypeVar

from pydantic import ConfigDict, Field, ValidationError, model_validator

from fermata.domain.base import DomainModel
from fermata.tools.schema.pydantic_errors import describe_pydantic_errors
from fermata.tools.tool import ToolFailure

ModelT = TypeVar("ModelT", bound=DomainModel)
FiniteNumber = Annotated[float, Field(allow_inf_nan=False)]


class LenientModel(DomainModel):
    """A null where a member has a default means the default: editors write both.

    Validators are built at first use: most functions import these models and read no snapshot.
    """

    model_config = ConfigDict(defer_build=True)

    @model_validator(mode="before")
    @classmethod
    def _null_is_default(cls, value: Any) -> Any:
        if not isinstance(value, dict) or None not in value.values():
            return value
        kept = {field.alias or name for name, field in cls.model_fields.items() if field.is_required()}
        return {name: member for name, member in value.items() if member is not None or name in kept}


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
    """What `list_documents` needs."""

    page: SnapshotPage
    current_document: DocumentRef | None = None
    site: SiteDocuments


class SiteEditorView(LenientModel):
    """What the editor shows right now, for the prompt."""

    page: SnapshotPage
    current_document: DocumentRef | None = None
    site: SnapshotSite
    selected_node_id: str | None = None
    active_breakpoint_id: str = ""


class SiteSettings(LenientModel):
    settings: dict[str, Any] = Field(default_factory=dict)


class DesignPart(LenientModel):
    """What `list_tokens` needs; the families are read one by one from `site.settings`."""

    site: SiteSettings


def read_snapshot_part(snapshot: Any, model: type[ModelT]) -> ModelT:
    """That part of the snapshot, or a ToolFailure that says what is missing."""
    if snapshot is None:
        raise ToolFailure("The editor sent no snapshot with this prompt, so there is nothing to list.")
    return read_lenient_model(snapshot, model, "snapshot")


def read_lenient_model(value: Any, model: type[ModelT], path: str) -> ModelT:
    try:
        return model.from_wire(value)
    except ValidationError as refused:
        raise ToolFailure(
            f"The editor's snapshot cannot be read: {describe_pydantic_errors(refused, (path,))[0]}."
        ) from None
