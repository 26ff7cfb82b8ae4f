"""Define the response bodies for the OpenAPI document (wire/openapi/document.py).

Handlers build their responses without these classes, so that no function has to load them (decision 0026). A member
whose default is None is left out of a response when it has no value; one without a default is always there.
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
    """A sentence that says what is wrong and what to do."""

    error: str


class OkResponse(ResponseModel):
    ok: Literal[True]


class TextView(ResponseModel):
    kind: Literal["text"]
    text: str


class ImageView(ResponseModel):
    """An image. `url` is a path on this server, for a request with the same token or cookie."""

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
    """A conversation. Totals are those of ended turns. `contextTokens` is the context size after the last one."""

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
    """The turn that runs in the conversation. Follow it from event `seq` on."""

    bridge_id: str
    seq: _Count
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


class ModelChoiceView(ResponseModel):
    credential_id: str
    model_id: str


class DefaultListResponse(ResponseModel):
    """The defaults of the scopes that have one."""

    defaults: dict[Scope, ModelChoiceView]


class DefaultView(ModelChoiceView):
    scope: Scope
    updated_at: _Instant
    updated_by: str


class DefaultResponse(ResponseModel):
    default: DefaultView


class CredentialView(ResponseModel):
    """A credential without its key. `keyFingerprintCurrent` is false when the key has to be entered again."""

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
    """The result of a test. A key that does not work is a result, not an error."""

    ok: bool
    model_count: _Count | None = None
    error: str | None = None


class ModelListResponse(ResponseModel):
    models: list[ModelInfo]


class StartedTurnResponse(ResponseModel):
    """A turn that was started. Follow it at `bridges/{bridgeId}/events?after=0`."""

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
    """The state of a turn. While it is `paused`, the requests in `pending` wait for answers.

    `seq` is the number of the last event. `undoes` is the bridge whose edits the turn takes back.
    """

    bridge_id: str
    conversation_id: str
    status: Literal["running", "paused", "done", "error", "cancelled"]
    seq: _Count
    round: _Count
    pending: list[PendingToolRequestView]
    undoes: str | None = None


class JournalEntryView(ResponseModel):
    """An edit. `input` is the beginning of the call's input, `inverse` names the tools that take the edit back.

    `state`: `applied`, `undone`, `partly` undone, or `stuck` without an inverse; `problem` then says why. `undoneBy`
    is the last undo that tried the edit, `reason` why it skipped the edit. `redoneBy` is the undo of an undo that
    restored the edit.
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
    """A page of edits. `nextCursor` is there when there are more: send it as `cursor`."""

    bridge_id: str
    entries: list[JournalEntryView]
    next_cursor: str | None = None


class TurnEndResponse(ResponseModel):
    """How the turn ended: not as `cancelled` when it had ended before."""

    bridge_id: str
    status: Literal["done", "error", "cancelled"]


class UsageView(ResponseModel):
    """Sums of usage. `chatCount` counts distinct conversations that were active.

    `billableCostUsd` is there when it was requested. It excludes turns that ended in an error of the service or the
    provider. `unpricedRequests` is there when there were requests whose tokens are counted and whose cost is unknown.
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
    """The usage of a day in the requested time zone."""

    day: Annotated[str, Field(json_schema_extra={"format": "date"})]


class AuditResponse(ResponseModel):
    """Usage by user, scope and model, the highest cost first; and by day, in order."""

    since: _Instant
    totals: UsageView
    by_user: list[UsageByUserView]
    by_scope: list[UsageByScopeView]
    by_model: list[UsageByModelView]
    by_day: list[UsageByDayView]


class BudgetPeriodView(ResponseModel):
    """A budget in one period. `heldUsd` is reserved for running requests. `leftUsd` is null without a limit."""

    spent_usd: _Usd
    held_usd: _Usd
    left_usd: _Usd | None


class BudgetLimitsView(ResponseModel):
    """Limits of a budget. Null is unlimited."""

    daily_usd: _Usd | None
    monthly_usd: _Usd | None


class BudgetView(BudgetLimitsView):
    today: BudgetPeriodView
    this_month: BudgetPeriodView


class UserBudgetView(BudgetView):
    user_id: str


class BudgetsResponse(ResponseModel):
    """The budgets. Days and months are UTC. `eachUser` applies to users who are not in `users`."""

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
    """Where to PUT exactly the announced bytes, with `headers`. `ref` names the upload in request bodies."""

    ref: str
    method: Literal["PUT"]
    url: str
    headers: UploadHeaders
    url_expires_at: _Instant
    ref_expires_at: _Instant


class ToolView(ResponseModel):
    """A tool. `inputSchema` is JSON Schema without references.

    The caller needs one of `permissions`, if there are any. A tool that writes needs `ai.tools.write` as well. The
    editor executes a tool whose execution is `browser`; its `toolRequest` may have members besides those of the schema.
    """

    name: str
    description: str
    input_schema: dict[str, Any]
    execution: Literal["server", "browser", "remote", "mcp", "agent"]
    capability: Literal["read", "write"]
    permissions: list[str]


class ToolListResponse(ResponseModel):
    """The tools, in the order in which a model gets them."""

    tools: list[ToolView]


class McpConnectorListResponse(ResponseModel):
    """An empty list: there are no MCP connectors."""

    connectors: Annotated[list[Any], Field(max_length=0)]


class VersionResponse(ResponseModel):
    version: str
    stage: Literal["dev", "prod", "local"]
