"""Read what the editor of a plan's user has said: the page they see, and how plans are to be carried out."""

from typing import Any

from pydantic import Field

from fermata.domain.base import DomainModel
from fermata.plans.page_model import HOME_SLUG
from fermata.plans.slugs import normalize_slug


class EditorState(DomainModel):
    """The snapshot of a turn of the planner.

    Attributes:
        slug: The page that the user sees.
        only_plan: Hold the plan, whatever it changes.
        allow_structure: Whether plans may add, remove and move blocks and items.
        notes: What the site is about, for the model.
        chain_id: Of the chain of plans whose step the turn is; empty for none.
        chain_step: The number of that step.
    """

    slug: str = HOME_SLUG
    message: str = ""
    locale: str | None = None
    only_plan: bool = False
    allow_structure: bool = True
    active_block_id: str | None = None
    active_block_type: str | None = None
    active_editable_path: str | None = None
    chain_id: str = ""
    chain_step: int = 0
    notes: dict[str, Any] = Field(default_factory=dict)
    block_types: tuple[str, ...] = ()


def read_editor_state(snapshot: Any) -> EditorState:
    """Return the state that a snapshot holds. Members of other types than expected are ignored."""
    members = snapshot if isinstance(snapshot, dict) else {}
    texts = ("message", "locale", "chainId", "activeBlockId", "activeBlockType", "activeEditablePath")
    known: dict[str, Any] = {name: members[name] for name in texts if isinstance(members.get(name), str)}
    for name in ("onlyPlan", "allowStructure"):
        if isinstance(members.get(name), bool):
            known[name] = members[name]
    if type(members.get("chainStep")) is int:
        known["chainStep"] = members["chainStep"]
    notes = members.get("notes")
    types = members.get("blockTypes")
    return EditorState(
        slug=normalize_slug(members.get("slug")) or HOME_SLUG,
        notes=notes if isinstance(notes, dict) else {},
        block_types=tuple(one for one in types if isinstance(one, str)) if isinstance(types, list) else (),
        **{_to_field(name): value for name, value in known.items()},
    )


def _to_field(name: str) -> str:
    return next(field for field, one in EditorState.model_fields.items() if one.alias == name or field == name)
