"""Hold what an agent is told of the content space that its turn works in."""

from dataclasses import dataclass, field

from fermata.content.content_space import ContentSpace, SpaceKey
from fermata.content.documents.read_document import ModelState


@dataclass(frozen=True)
class AgentSpace:
    """A space at the start of a turn, or that none is chosen.

    Attributes:
        key: The space; None if neither the prompt nor the conversation names one, and the tenant has not exactly one.
        models: Its models, by id.
        choices: Without a space, the names of those that may be chosen.
    """

    key: SpaceKey | None = None
    space: ContentSpace = field(default_factory=ContentSpace)
    models: tuple[ModelState, ...] = ()
    choices: tuple[str, ...] = ()
