"""Define the bodies of requests of the planner's clients (docs/edit-plans.md)."""

from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from fermata.wire.bodies.fields import JSON_INTEGER, LenientBody, ResourceId

SessionName = Annotated[str, StringConstraints(min_length=1, max_length=120, pattern=r"^[A-Za-z0-9._:-]+$")]
"""A session, or a site. A site's name is written in lower case."""
PageSlug = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"^/\S*$")]
ExecutionMode = Literal["auto", "plan_only", "apply_pending_plan", "discard_pending_plan", "continue_chain"]
JsonOrText = dict[str, Any] | list[Any] | str
"""An object, or the text of one."""
MAX_PLANNER_MESSAGE_CHARACTERS = 100_000


class SessionBody(LenientBody):
    """Which session a request is about."""

    session: SessionName
    site_id: SessionName | None = None


class SiteNotesBody(SessionBody):
    """What an editor says about its site."""

    site_purpose: JsonOrText | None = None
    site_hosting: JsonOrText | None = None
    business_context: JsonOrText | None = None
    site_context: JsonOrText | None = None


class PlannerChatBody(SiteNotesBody):
    """A prompt of a session, or what becomes of the plan that waits in it.

    `when_busy` says what happens while another turn of the session runs: the chat is refused, or ends that turn.
    """

    slug: PageSlug = "/"
    message: Annotated[str, StringConstraints(max_length=MAX_PLANNER_MESSAGE_CHARACTERS)] = ""
    locale: Annotated[str, StringConstraints(max_length=40)] | None = None
    model_key: Annotated[str, StringConstraints(max_length=40)] | None = None
    active_block_id: ResourceId | None = None
    active_block_type: ResourceId | None = None
    active_editable_path: ResourceId | None = None
    execution_mode: ExecutionMode = "auto"
    when_busy: Literal["reject", "interrupt"] = "reject"
    pending_plan_id: ResourceId | None = None
    continuation_chain_id: ResourceId | None = None
    components_manifest: JsonOrText | None = None
    site_capabilities: JsonOrText | None = None


class VariationsBody(SiteNotesBody):
    """A block, and what is to be different in its variations. Other members of a chat may be there."""

    slug: PageSlug = "/"
    message: Annotated[str, StringConstraints(min_length=1, max_length=MAX_PLANNER_MESSAGE_CHARACTERS, pattern=r"\S")]
    active_block_id: ResourceId


class RegisterSiteBody(LenientBody):
    """A site as the editors of a workspace show it. `config` may have anything."""

    site_id: SessionName
    name: Annotated[str, StringConstraints(min_length=1, max_length=200)]
    preview_url: Annotated[str, StringConstraints(max_length=2000, pattern=r"^https?://")] | None = None
    port: Annotated[int, Field(ge=1, le=65535)] | None = None
    purpose: Annotated[str, StringConstraints(max_length=4000)] | None = None
    config: Annotated[dict[str, Any], Field(default_factory=dict)]


class ChatForecastBody(SessionBody):
    """A message that is not sent yet. Other members of a chat may be there."""

    message: Annotated[str, StringConstraints(max_length=MAX_PLANNER_MESSAGE_CHARACTERS)] = ""
    execution_mode: ExecutionMode = "auto"


class CancelChatBody(LenientBody):
    """Which chat to cancel: that of a stream, or the newest of a session."""

    stream_id: ResourceId | None = None
    session: SessionName | None = None
    site_id: SessionName | None = None


class OperationsBody(SessionBody):
    """Operations to apply directly."""

    ops: Annotated[list[dict[str, Any]], Field(min_length=1, max_length=200)]
    site_capabilities: JsonOrText | None = None


class HistoryStepBody(SessionBody):
    """A page whose newest change is undone or redone, or a version that is undone on all of its pages."""

    slug: PageSlug | None = None
    version: Annotated[int, Field(ge=1, le=10**9), JSON_INTEGER] | None = None


class RestoreBody(SessionBody):
    """A version of the draft to go back to."""

    version: Annotated[int, Field(ge=1, le=10**9), JSON_INTEGER]


class PublishBody(SessionBody):
    """Whose draft is published."""


class RestoreEditionBody(SessionBody):
    """An edition whose pages the draft gets."""

    number: Annotated[int, Field(ge=1, le=10**9), JSON_INTEGER]


class BootstrapBody(SessionBody):
    """The pages that a draft begins with."""

    pages: Annotated[list[dict[str, Any]], Field(min_length=1, max_length=500)]
    overwrite: bool = False
