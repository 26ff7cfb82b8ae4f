"""Define the bodies of requests in the CMS agent's own protocol (docs/content.md)."""

from typing import Annotated

from pydantic import Field, StringConstraints

from fermata.wire.bodies.approval_requests import MAX_DECISION_REASON_CHARS
from fermata.wire.bodies.fields import LenientBody, NonBlankTitle, ResourceId, StrictBody
from fermata.wire.bodies.prompt_parts import MAX_PROMPT_CHARACTERS

_SpacePart = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]([a-z0-9-]{0,62}[a-z0-9])?$")]


class CmsTargetBody(StrictBody):
    """The content space that is worked on. Both are names, not guesses: the space has to exist."""

    site_id: _SpacePart
    environment_id: _SpacePart = "main"

    @property
    def space(self) -> str:
        """The name of the space."""
        return f"{self.site_id}/{self.environment_id}"


class CmsPromptBody(LenientBody):
    """A prompt. Without `sessionId` it begins a session. Without a model it has that of the scope `cms`."""

    prompt: Annotated[
        str,
        StringConstraints(min_length=1, max_length=MAX_PROMPT_CHARACTERS),
        Field(json_schema_extra={"pattern": r"\S"}),
    ]
    session_id: ResourceId | None = None
    model_id: ResourceId | None = None
    cms_target: CmsTargetBody | None = None


class CmsDecisionBody(StrictBody):
    """What a person has decided about a call."""

    approved: bool
    reason: Annotated[str, StringConstraints(max_length=MAX_DECISION_REASON_CHARS)] = ""


class NewCmsSession(StrictBody):
    """A new session. All members have defaults."""

    title: Annotated[str, StringConstraints(strip_whitespace=True, max_length=200)] | None = None
    model_id: ResourceId | None = None
    cms_target: CmsTargetBody | None = None


class CmsSessionChange(StrictBody):
    """The new values of a session. Members that are left out keep their value."""

    title: NonBlankTitle | None = None
    archived: bool | None = None
    model_id: ResourceId | None = None
    cms_target: CmsTargetBody | None = None
