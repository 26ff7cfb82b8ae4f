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
    partial: Literal[True] | None = None


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
    revision: str | None = None
    undoes: str | None = None


class TurnState(Shape):
    """`paused`: somebody is asked, for what `pending` holds. `seq` is the number of the last event. `undoes`: the
    bridge whose edits it takes back.
    """

    bridge_id: str
    conversation_id: str
    status: Literal["running", "paused", "done", "error", "cancelled"]
    seq: Count
    round: Count
    pending: list[PendingRequest]
    undoes: str | None = None


class JournalEdit(Shape):
    """`input` is the beginning of what was asked for, `inverse` the tools that take it back.

    `state`: `applied`, `undone`, `partly` undone, or `stuck` without a way back, for which `problem` says why.
    `undoneBy` is the undo that came last to it, `reason` why it was left as it is there; `redoneBy` is the undo of an
    undo that made it stand again.
    """

    effect_key: str
    seq: Count
    round: Count
    call: Count
    tool_call_id: str
    tool_name: str
    input: str
    inverse: list[str]
    state: Literal["applied", "undone", "partly", "stuck"]
    at: Instant
    revision_before: str | None = None
    revision_after: str | None = None
    problem: str | None = None
    undone_by: str | None = None
    redone_by: str | None = None
    reason: str | None = None


class JournalAnswer(Shape):
    """`nextCursor` is there when there are more: send it as `cursor`."""

    bridge_id: str
    entries: list[JournalEdit]
    next_cursor: str | None = None


class TurnEnd(Shape):
    """How the turn ended: otherwise than by being cancelled when it was over already."""

    bridge_id: str
    status: Literal["done", "error", "cancelled"]


class UsageRow(Shape):
    """`chatCount`: distinct conversations that were active. `billableCostUsd` is there when it was asked for: without
    turns that ended in an error of ours or of the provider's. `unpricedRequests` is there when there were any: requests
    whose tokens are counted, and whose cost nobody knows.
    """

    prompt_tokens: Count
    completion_tokens: Count
    cost_usd: Usd
    chat_count: Count
    cache_read_tokens: Count
    cache_creation_tokens: Count
    billable_cost_usd: Usd | None = None
    unpriced_requests: Annotated[int, Field(ge=1)] | None = None


class UsageByUser(UsageRow):
    user_id: str
    user_label: str


class UsageByScope(UsageRow):
    scope: str


class UsageByModel(UsageRow):
    provider_id: str
    model_id: str


class UsageByDay(UsageRow):
    """`day` is the viewer's."""

    day: Annotated[str, Field(json_schema_extra={"format": "date"})]


class AuditAnswer(Shape):
    """The costliest first, days in their order."""

    since: Instant
    totals: UsageRow
    by_user: list[UsageByUser]
    by_scope: list[UsageByScope]
    by_model: list[UsageByModel]
    by_day: list[UsageByDay]


class Pot(Shape):
    """`heldUsd` is reserved for requests under way. `leftUsd` is null where there is no limit."""

    spent_usd: Usd
    held_usd: Usd
    left_usd: Usd | None


class LimitsView(Shape):
    """Null: no limit."""

    daily_usd: Usd | None
    monthly_usd: Usd | None


class BudgetView(LimitsView):
    today: Pot
    this_month: Pot


class UserBudget(BudgetView):
    user_id: str


class BudgetsAnswer(Shape):
    """Days and months are UTC. `eachUser` is for those who are not in `users`."""

    tenant: BudgetView
    each_user: LimitsView
    users: list[UserBudget]
    day_renews_at: Instant
    month_renews_at: Instant
    updated_at: Instant | None = None
    updated_by: str | None = None


class UploadHeaders(Shape):
    model_config = ConfigDict(alias_generator=None)

    content_type: str = Field(alias="content-type")
    x_amz_checksum_sha256: str = Field(alias="x-amz-checksum-sha256")


class UploadAnswer(Shape):
    """PUT exactly the bytes that were announced to `url`, with `headers`. `ref` is its name in bodies."""

    ref: str
    method: Literal["PUT"]
    url: str
    headers: UploadHeaders
    url_expires_at: Instant
    ref_expires_at: Instant


class ToolView(Shape):
    """`inputSchema` is JSON Schema without references. Of `permissions` one is enough; none means that it needs none.
    What writes needs `ai.tools.write` as well. A tool whose execution is `browser` is carried out by the editor; its
    `toolRequest` may hold members besides those of the schema.
    """

    name: str
    description: str
    input_schema: dict[str, Any]
    execution: Literal["server", "browser", "remote", "mcp", "agent"]
    capability: Literal["read", "write"]
    permissions: list[str]


class ToolsAnswer(Shape):
    """In the order a model is told them."""

    tools: list[ToolView]


class ConnectorsAnswer(Shape):
    """There are no MCP connectors."""

    connectors: Annotated[list[Any], Field(max_length=0)]


class Version(Shape):
    version: str
    stage: Literal["dev", "prod", "local"]
