"""Hold what an agent is told of the content space that its turn works in."""

from dataclasses import field
from typing import Any

from fermata.aws.resources import Resources
from fermata.content.content_space import ContentSpace, SpaceKey
from fermata.content.documents.read_document import ModelState
from fermata.domain.value_dataclass import value_dataclass


@value_dataclass(frozen=True)
class AgentSpace:
    """A space at the start of a turn, or that none is chosen.

    Attributes:
        key: The space; None if neither the prompt nor the conversation names one, and the tenant has not exactly one.
        models: Its models, by id.
        choices: Without a space, the names of those that may be chosen.
        resources: Of the process, for an agent that looks further into the space.
        user: The caller.
        capabilities: Those of the caller.
        prompt_text: What the user has written.
        ui_context: What the user has open, as the client has posted it.
    """

    key: SpaceKey | None = None
    space: ContentSpace = field(default_factory=ContentSpace)
    models: tuple[ModelState, ...] = ()
    choices: tuple[str, ...] = ()
    resources: Resources | None = None
    user: str = ""
    capabilities: frozenset[str] = frozenset()
    prompt_text: str = ""
    ui_context: Any = None
