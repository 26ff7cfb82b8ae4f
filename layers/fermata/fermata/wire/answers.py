"""What answers look like, for the OpenAPI document (wire/openapi.py). The doors phrase them without these classes.

A member whose default is None is left out when there is nothing to say; one without a default is always there.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from fermata.words.offered import Offered
from fermata.words.scopes import Scope

Instant = Annotated[str, Field(json_schema_extra={"format": "date-time"})]
Count = Annotated[int, Field(ge=0)]
Usd = Annotated[float, Field(ge=0)]


class Shape(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel)


class Error(Shape):
    """What is wrong, and what to do about it."""

    error: str


class Ok(Shape):
    ok: Literal[True]


class TextView(Shape):
    kind: Literal["text"]
    text: str


class ImageView(Shape):
    """`url` is a path on this server; it is fetched with the same token or cookie."""

    kind: Literal["image"]
    mime_type: str
    url: str


class ToolCallView(Shape):
    kind: Literal["toolCall"]
    tool_call_id: str
    tool_name: str
    input: Any


class ToolResultView(Shape):
    kind: Literal["toolResult"]
    ok: bool
    error: str | None = None


BlockView = Annotated[TextView | ImageView | ToolCallView | ToolResultView, Field(discriminator="kind")]


class MessageView(Shape):
    id: str
    position: Count
    role: Literal["user", "assistant", "tool"]
    content: list[BlockView]
    tool_call_id: str | None
    tool_name: str | None
    created_at: Instant


class ConversationView(Shape):
    """Totals are those of finished turns; `contextTokens` is how full the model's window was at the end of the last."""

    id: str
    scope: Scope
    title: str
    credential_id: str | None
    model_id: str
    prompt_tokens_total: Count
    completion_tokens_total: Count
    cost_usd_total: Usd
    cache_read_tokens_total: Count
    cache_creation_tokens_total: Count
    context_tokens: Count
    created_at: Instant
    updated_at: Instant


class ActiveTurn(Shape):
    """The turn that holds the conversation: follow it from event `seq` on."""

    bridge_id: str
    seq: Count
    state: Literal["running", "paused"]


class OpenedConversation(ConversationView):
    messages: list[MessageView]
    active_turn: ActiveTurn | None = None


class ConversationAnswer(Shape):
    conversation: ConversationView


class OpenedConversationAnswer(Shape):
    """`nextCursor` is there when there are older messages: send it as `before`."""

    conversation: OpenedConversation
    next_cursor: str | None = None


class ConversationsAnswer(Shape):
    """`nextCursor` is there when there are more: send it as `cursor`."""

    conversations: list[ConversationView]
    next_cursor: str | None = None


class PickedModel(Shape):
    credential_id: str
    model_id: str


class DefaultsAnswer(Shape):
    """Only the scopes that have a default."""

    defaults: dict[Scope, PickedModel]


class DefaultView(PickedModel):
    scope: Scope
    updated_at: Instant
    updated_by: str


class DefaultAnswer(Shape):
    default: DefaultView


class CredentialView(Shape):
    """Nothing of the key. `keyFingerprintCurrent` is false when the key has to be entered again."""

    id: str
    provider_id: str
    auth_mode: Literal["apiKey", "baseUrl"]
    display_label: str
    base_url: str | None
    key_fingerprint_current: bool
    created_at: Instant
    last_used_at: Instant | None


class CredentialAnswer(Shape):
    credential: CredentialView


class CredentialsAnswer(Shape):
    credentials: list[CredentialView]


class Tried(Shape):
    """A key that does not work is an answer, not an error."""

    ok: bool
    model_count: Count | None = None
    error: str | None = None


class ModelsAnswer(Shape):
    models: list[Offered]


class StartedTurn(Shape):
    """Follow the turn at `bridges/{bridgeId}/events?after=0`."""

    bridge_id: str
    seq: Count


class PendingRequest(Shape):
    """A tool request that waits for the browser's answer."""

    request_id: str
    tool_call_id: str
    tool_name: str
    input: Any = None
    effect_key: str
    deadline: Instant


class TurnState(Shape):
    """`paused`: somebody is asked, for what `pending` holds. `seq` is the number of the last event."""

    bridge_id: str
    conversation_id: str
    status: Literal["running", "paused", "done", "error", "cancelled"]
    seq: Count
    round: Count
    pending: list[PendingRequest]


class TurnEnd(Shape):
    """How the turn ended: otherwise than by being cancelled when it was over already."""

    bridge_id: str
    status: Literal["done", "error", "cancelled"]


class ConnectorsAnswer(Shape):
    """There are no MCP connectors."""

    connectors: Annotated[list[Any], Field(max_length=0)]


class Version(Shape):
    version: str
    stage: Literal["dev", "prod", "local"]
