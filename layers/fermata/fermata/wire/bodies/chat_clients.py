"""Define the bodies of requests of chat clients: the AI SDK's, and AG-UI's runs (docs/clients.md).

What they repeat of the conversation is read for what is new in it only. So messages are checked where they are read.
"""

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, StringConstraints

from fermata.wire.bodies.fields import LenientBody, ResourceId
from fermata.wire.bodies.turn_requests import SnapshotBody

MAX_CLIENT_TOOLS = 64
ClientToolName = Annotated[str, StringConstraints(min_length=1, max_length=64, pattern=r"^[a-zA-Z0-9_-]+$")]
ChatMessage = dict[str, Any]


class ClientToolBody(LenientBody):
    """A tool that the client carries out. `parameters` is the JSON Schema of its input."""

    name: ClientToolName
    description: Annotated[str, StringConstraints(max_length=8_000)] = ""
    parameters: dict[str, Any] | None = None


class UiChatBody(SnapshotBody):
    """A request of the AI SDK: all messages of the chat, the newest last.

    `id` is the chat's, and `message_id` that of the message which is edited or asked again. The other members are those
    that an application adds to the request.
    """

    messages: list[ChatMessage]
    id: ResourceId | None = None
    trigger: Annotated[str, StringConstraints(max_length=40)] | None = None
    message_id: ResourceId | None = None
    url_query: dict[str, Any] | None = None
    shared_state: dict[str, Any] | None = None
    shared_state_read_only: bool = False
    tools: Annotated[list[ClientToolBody], Field(max_length=MAX_CLIENT_TOOLS)] | None = None
    browser_tools: bool = True


class ResumeBody(LenientBody):
    """The answer to an interrupt: a decision about a call."""

    interrupt_id: ResourceId
    status: Literal["resolved", "cancelled"]
    payload: Any = None


class ContextBody(LenientBody):
    """A fact that the front end tells the agent."""

    description: Annotated[str, StringConstraints(max_length=8_000)]
    value: str


class AguiRunBody(LenientBody):
    """The input of a run, as AG-UI 1.0 defines it."""

    model_config = ConfigDict(title="RunAgentInput")

    thread_id: ResourceId
    run_id: ResourceId
    messages: list[ChatMessage]
    state: Any = None
    tools: Annotated[list[ClientToolBody], Field(max_length=MAX_CLIENT_TOOLS)] = Field(default_factory=list)
    context: Annotated[list[ContextBody], Field(max_length=64)] = Field(default_factory=list)
    resume: Annotated[list[ResumeBody], Field(max_length=64)] | None = None
