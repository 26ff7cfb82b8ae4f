"""Define the response bodies of operations on conversations and their messages."""

from typing import Annotated, Any, Literal

from pydantic import Field

from fermata.domain.agent_ids import ConversationScope
from fermata.wire.bodies.responses.common import CountField, InstantField, ResponseModel, UsdField


class TextView(ResponseModel):
    kind: Literal["text"]
    text: str


class ImageView(ResponseModel):
    """An image. `url` is a path on this server, for a request with the same token or cookie."""

    kind: Literal["image"]
    mime_type: str
    url: str


class AudioView(ResponseModel):
    """A recording, whose transcript is a text beside it. `url` is as that of an image."""

    kind: Literal["audio"]
    mime_type: str
    url: str


class ToolCallView(ResponseModel):
    kind: Literal["toolCall"]
    tool_call_id: str
    tool_name: str
    input: Any


class ToolResultView(ResponseModel):
    kind: Literal["toolResult"]
    ok: bool
    error: str | None = None


BlockView = Annotated[TextView | ImageView | AudioView | ToolCallView | ToolResultView, Field(discriminator="kind")]


class UsageSoFarView(ResponseModel):
    """What a turn had used when a message was stored, that of its earlier rounds included."""

    prompt_tokens: CountField
    completion_tokens: CountField
    cost_usd: UsdField


class MessageView(ResponseModel):
    """A message. `turnUsage` is on the last line of a model's response: that of a turn's last one is the total."""

    id: str
    position: CountField
    role: Literal["user", "assistant", "tool"]
    content: list[BlockView]
    tool_call_id: str | None
    tool_name: str | None
    created_at: InstantField
    partial: Literal[True] | None = None
    turn_usage: UsageSoFarView | None = None


class ConversationView(ResponseModel):
    """A conversation. Totals are those of ended turns. `contextTokens` is the context size after the last one."""

    id: str
    scope: ConversationScope
    title: str
    credential_id: str | None
    model_id: str
    space: str | None = None
    prompt_tokens_total: CountField
    completion_tokens_total: CountField
    cost_usd_total: UsdField
    cache_read_tokens_total: CountField
    cache_creation_tokens_total: CountField
    context_tokens: CountField
    created_at: InstantField
    updated_at: InstantField


class ActiveTurnView(ResponseModel):
    """The turn that runs in the conversation. Follow it from event `seq` on."""

    bridge_id: str
    seq: CountField
    state: Literal["running", "paused"]


class ConversationWithMessagesView(ConversationView):
    messages: list[MessageView]
    active_turn: ActiveTurnView | None = None


class ConversationResponse(ResponseModel):
    conversation: ConversationView


class ConversationWithMessagesResponse(ResponseModel):
    """A conversation. `nextCursor` is there when there are older messages: send it as `before`."""

    conversation: ConversationWithMessagesView
    next_cursor: str | None = None


class ConversationListResponse(ResponseModel):
    """A page of conversations. `nextCursor` is there when there are more: send it as `cursor`."""

    conversations: list[ConversationView]
    next_cursor: str | None = None
