"""The parts of the editor's snapshot that we read. Everything else in it passes unseen.

The editor posts the snapshot raw and nothing has checked it, so each reader takes only the part it needs: a broken
colour token must not keep a model from listing documents.
"""

from typing import Annotated, Any, Literal, TypeVar

from pydantic import ConfigDict, Field, ValidationError, model_validator

from fermata.tools.misread import misread
from fermata.tools.tool import ToolFailure
from fermata.words.base import Word

Part = TypeVar("Part", bound=Word)
Number = Annotated[float, Field(allow_inf_nan=False)]


class Lenient(Word):
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


class DocumentRef(Lenient):
    type: Literal["page", "template", "visualComponent"]
    id: str


class Target(Lenient):
    kind: Literal["everywhere", "postTypes", "notFound"]
    table_slugs: tuple[str, ...] = ()


class Template(Lenient):
    target: Target
    priority: Number = 100.0


class Page(Lenient):
    id: str
    title: str = ""
    slug: str = ""
    root_node_id: str = ""
    template: Template | None = None


class Tree(Lenient):
    root_node_id: str = ""


class VisualComponent(Lenient):
    id: str
    name: str = ""
    tree: Tree = Field(default_factory=Tree)


class Breakpoint(Lenient):
    id: str
    width: Number
    media_query: str = ""


class Documents(Lenient):
    pages: tuple[Page, ...] = ()
    visual_components: tuple[VisualComponent, ...] = ()


class Site(Documents):
    breakpoints: tuple[Breakpoint, ...] = ()


class Catalogue(Lenient):
    """What `list_documents` needs."""

    page: Page
    current_document: DocumentRef | None = None
    site: Documents


class View(Lenient):
    """What the editor shows right now, for the prompt."""

    page: Page
    current_document: DocumentRef | None = None
    site: Site
    selected_node_id: str | None = None
    active_breakpoint_id: str = ""


class SettingsOnly(Lenient):
    settings: dict[str, Any] = Field(default_factory=dict)


class Design(Lenient):
    """What `list_tokens` needs; the families are read one by one from `site.settings`."""

    site: SettingsOnly


def part_of(snapshot: Any, part: type[Part]) -> Part:
    """That part of the snapshot, or a ToolFailure that says what is missing."""
    if snapshot is None:
        raise ToolFailure("The editor sent no snapshot with this prompt, so there is nothing to list.")
    return read_part(snapshot, part, "snapshot")


def read_part(value: Any, part: type[Part], where: str) -> Part:
    try:
        return part.read(value)
    except ValidationError as refused:
        raise ToolFailure(f"The editor's snapshot cannot be read: {misread(refused, (where,))[0]}.") from None
