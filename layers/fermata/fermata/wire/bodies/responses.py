"""Response bodies of the API, for the OpenAPI document (wire/openapi/document.py); handlers do without them.

A member whose default is None is left out when there is nothing to say; one without a default is always there.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from fermata.domain.model_info import ModelInfo
from fermata.domain.scopes import Scope

_Instant = Annotated[str, Field(json_schema_extra={"format": "date-time"})]
_Count = Annotated[int, Field(ge=0)]
_Usd = Annotated[float, Field(ge=0)]


class ResponseModel(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel)


class ErrorResponse(ResponseModel):
    """What is wrong, and what to do about it."""

    error: str


class OkResponse(ResponseModel):
    ok: Literal[True]


class TextView(ResponseModel):
    kind: Literal["text"]
    text: str


class ImageView(ResponseModel):
    """`url` is a path on this server; it is fetched with the same token or cookie."""

    kind: Literal["image"]
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


BlockView = Annotated[TextView | ImageView | ToolCallView | ToolResultView, Field(discriminator="kind")]


class MessageView(ResponseModel):
    id: str
    position: _Count
    role: Literal["user", "assistant", "tool"]
    content: list[BlockView]
    tool_call_id: str | None
    tool_name: str | None
    created_at: _Instant
    partial: Literal[True] | None = None


class ConversationView(ResponseModel):
    """Totals are those of finished turns; `contextTokens` is how full the model's window was at the end of the last."""

    id: str
    scope: Scope
    title: str
    credential_id: str | None
    model_id: str
    prompt_tokens_total: _Count
    completion_tokens_total: _Count
    cost_usd_total: _Usd
    cache_read_tokens_total: _Count
    cache_creation_tokens_total: _Count
    context_tokens: _Count
    created_at: _Instant
    updated_at: _Instant


class ActiveTurnView(ResponseModel):
    """The turn that holds the conversation: follow it from event `seq` on."""

    bridge_id: str
    seq: _Count
    state: Literal["running", "paused"]


class ConversationWithMessagesView(ConversationView):
    messages: list[MessageView]
    active_turn: ActiveTurnView | None = None


class ConversationResponse(ResponseModel):
    conversation: ConversationView


class ConversationWithMessagesResponse(ResponseModel):
    """`nextCursor` is there when there are older messages: send it as `before`."""

    conversation: ConversationWithMessagesView
    next_cursor: str | None = None


class ConversationListResponse(ResponseModel):
    """`nextCursor` is there when there are more: send it as `cursor`."""

    conversations: list[ConversationView]
    next_cursor: str | None = None


class ModelChoiceView(ResponseModel):
    credential_id: str
    model_id: str


class DefaultListResponse(ResponseModel):
    """Only the scopes that have a default."""

    defaults: dict[Scope, ModelChoiceView]


class DefaultView(ModelChoiceView):
    scope: Scope
    updated_at: _Instant
    updated_by: str


class DefaultResponse(ResponseModel):
    default: DefaultView


class CredentialView(ResponseModel):
    """Nothing of the key. `keyFingerprintCurrent` is false when the key has to be entered again."""

    id: str
    provider_id: str
    auth_mode: Literal["apiKey", "baseUrl"]
    display_label: str
    base_url: str | None
    key_fingerprint_current: bool
    created_at: _Instant
    last_used_at: _Instant | None


class CredentialResponse(ResponseModel):
    credential: CredentialView


class CredentialListResponse(ResponseModel):
    credentials: list[CredentialView]


class CredentialTestResponse(ResponseModel):
    """A key that does not work is an answer, not an error."""

    ok: bool
    model_count: _Count | None = None
    error: str | None = None


class ModelListResponse(ResponseModel):
    models: list[ModelInfo]


class StartedTurnResponse(ResponseModel):
    """Follow the turn at `bridges/{bridgeId}/events?after=0`."""

    bridge_id: str
    seq: _Count


class PendingToolRequestView(ResponseModel):
    """A tool request that waits for the browser's answer."""

    request_id: str
    tool_call_id: str
    tool_name: str
    input: Any = None
    effect_key: str
    deadline: _Instant
    revision: str | None = None
    undoes: str | None = None


class TurnStatusResponse(ResponseModel):
    """`paused`: somebody is asked, for what `pending` holds. `seq` is the number of the last event. `undoes`: the
    bridge whose edits it takes back.
    """

    bridge_id: str
    conversation_id: str
    status: Literal["running", "paused", "done", "error", "cancelled"]
    seq: _Count
    round: _Count
    pending: list[PendingToolRequestView]
    undoes: str | None = None


class JournalEntryView(ResponseModel):
    """`input` is the beginning of what was asked for, `inverse` the tools that take it back.

    `state`: `applied`, `undone`, `partly` undone, or `stuck` without a way back, for which `problem` says why.
    `undoneBy` is the undo that came last to it, `reason` why it was left as it is there; `redoneBy` is the undo of an
    undo that made it stand again.
    """

    effect_key: str
    seq: _Count
    round: _Count
    call: _Count
    tool_call_id: str
    tool_name: str
    input: str
    inverse: list[str]
    state: Literal["applied", "undone", "partly", "stuck"]
    at: _Instant
    revision_before: str | None = None
    revision_after: str | None = None
    problem: str | None = None
    undone_by: str | None = None
    redone_by: str | None = None
    reason: str | None = None


class JournalResponse(ResponseModel):
    """`nextCursor` is there when there are more: send it as `cursor`."""

    bridge_id: str
    entries: list[JournalEntryView]
    next_cursor: str | None = None


class TurnEndResponse(ResponseModel):
    """How the turn ended: otherwise than by being cancelled when it was over already."""

    bridge_id: str
    status: Literal["done", "error", "cancelled"]


class UsageView(ResponseModel):
    """`chatCount`: distinct conversations that were active. `billableCostUsd` is there when it was asked for: without
    turns that ended in an error of ours or of the provider's. `unpricedRequests` is there when there were any: requests
    whose tokens are counted, and whose cost nobody knows.
    """

    prompt_tokens: _Count
    completion_tokens: _Count
    cost_usd: _Usd
    chat_count: _Count
    cache_read_tokens: _Count
    cache_creation_tokens: _Count
    billable_cost_usd: _Usd | None = None
    unpriced_requests: Annotated[int, Field(ge=1)] | None = None


class UsageByUserView(UsageView):
    user_id: str
    user_label: str


class UsageByScopeView(UsageView):
    scope: str


class UsageByModelView(UsageView):
    provider_id: str
    model_id: str


class UsageByDayView(UsageView):
    """`day` is the viewer's."""

    day: Annotated[str, Field(json_schema_extra={"format": "date"})]


class AuditResponse(ResponseModel):
    """The costliest first, days in their order."""

    since: _Instant
    totals: UsageView
    by_user: list[UsageByUserView]
    by_scope: list[UsageByScopeView]
    by_model: list[UsageByModelView]
    by_day: list[UsageByDayView]


class BudgetPeriodView(ResponseModel):
    """`heldUsd` is reserved for requests under way. `leftUsd` is null where there is no limit."""

    spent_usd: _Usd
    held_usd: _Usd
    left_usd: _Usd | None


class BudgetLimitsView(ResponseModel):
    """Null: no limit."""

    daily_usd: _Usd | None
    monthly_usd: _Usd | None


class BudgetView(BudgetLimitsView):
    today: BudgetPeriodView
    this_month: BudgetPeriodView


class UserBudgetView(BudgetView):
    user_id: str


class BudgetsResponse(ResponseModel):
    """Days and months are UTC. `eachUser` is for those who are not in `users`."""

    tenant: BudgetView
    each_user: BudgetLimitsView
    users: list[UserBudgetView]
    day_renews_at: _Instant
    month_renews_at: _Instant
    updated_at: _Instant | None = None
    updated_by: str | None = None


class UploadHeaders(ResponseModel):
    model_config = ConfigDict(alias_generator=None)

    content_type: str = Field(alias="content-type")
    x_amz_checksum_sha256: str = Field(alias="x-amz-checksum-sha256")


class UploadResponse(ResponseModel):
    """PUT exactly the bytes that were announced to `url`, with `headers`. `ref` is its name in bodies."""

    ref: str
    method: Literal["PUT"]
    url: str
    headers: UploadHeaders
    url_expires_at: _Instant
    ref_expires_at: _Instant


class ToolView(ResponseModel):
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


class ToolListResponse(ResponseModel):
    """In the order a model is told them."""

    tools: list[ToolView]


class ConnectorListResponse(ResponseModel):
    """There are no MCP connectors."""

    connectors: Annotated[list[Any], Field(max_length=0)]


class VersionResponse(ResponseModel):
    version: str
    stage: Literal["dev", "prod", "local"]
