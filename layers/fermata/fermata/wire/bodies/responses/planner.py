"""Define the response bodies of the planner's operations."""

from typing import Any, Literal

from fermata.wire.bodies.responses.common import CountField, InstantField, ResponseModel


class NormalizedOperationView(ResponseModel):
    """What was changed about an operation: the rules, what was submitted, and what it became."""

    index: CountField
    rules: list[str]
    submitted: Any
    became: list[dict[str, Any]]


class ContinuationView(ResponseModel):
    """How far a chain of plans is. `continue_chain` with `chainId` plans the next step."""

    chain_id: str
    current_step: CountField
    total_steps: CountField
    next_step_label: str


class PlannerResultResponse(ResponseModel):
    """What a chat or a list of operations has come to. `normalizedFrom` says what was changed about a plan."""

    status: Literal["applied", "plan_ready", "info", "needs_clarification", "validation_error", "error", "canceled"]
    summary: str
    changes: list[str]
    mentioned_slugs: list[str] | None = None
    suggestions: list[str] | None = None
    preview_version: CountField | None = None
    pending_plan_id: str | None = None
    approval_id: str | None = None
    expires_at: InstantField | None = None
    destructive_reasons: list[str] | None = None
    normalized_from: list[NormalizedOperationView] | None = None
    continuation: ContinuationView | None = None
    error_code: str | None = None
    focus_block_id: str | None = None
    updated_slug: str | None = None
    undo_slug: str | None = None
    planner_source: Literal["llm", "pending", "ops"] | None = None
    model_used: str | None = None
    model_key: str | None = None


class PendingPlanView(ResponseModel):
    """A plan that waits. It is applied or dropped by `executionMode` of a chat, or by its approval."""

    pending_plan_id: str
    approval_id: str | None = None
    bridge_id: str
    summary: str
    changes: list[str]
    ops: list[dict[str, Any]]
    destructive_reasons: list[str]
    normalized_from: list[NormalizedOperationView]
    requested_at: InstantField
    expires_at: InstantField


class PendingPlanListResponse(ResponseModel):
    """The plans that wait in a session: one at most."""

    plans: list[PendingPlanView]


class StartedChatResponse(ResponseModel):
    stream_id: str


class ChatForecastResponse(ResponseModel):
    """What a chat will probably do. `inferredAction` is there if the words say it."""

    likely_deterministic: bool
    estimated_latency: Literal["instant", "moderate", "slow"]
    inferred_action: str | None = None


class CancelledChatResponse(ResponseModel):
    status: Literal["cancel_requested", "already_terminal", "not_found"]


class HistoryStatusResponse(ResponseModel):
    can_undo: bool
    can_redo: bool
    undo_count: CountField
    redo_count: CountField


class HistoryEntryView(ResponseModel):
    version: CountField
    at: InstantField
    kind: Literal["plan", "ops", "undo", "redo", "restore", "bootstrap"]
    summary: str
    slugs: list[str]
    turn: str | None = None


class HistoryLogResponse(ResponseModel):
    entries: list[HistoryEntryView]


class DraftChangedResponse(ResponseModel):
    """The draft has another version. `navigateToSlug`: the page that the user saw is gone, or is there again."""

    status: Literal["applied"]
    preview_version: CountField
    navigate_to_slug: str | None = None
    restored_version: CountField | None = None
    slugs: list[str] | None = None


class DraftPageResponse(ResponseModel):
    """A page with its blocks."""

    id: str
    slug: str
    title: str
    updated_at: str
    blocks: list[dict[str, Any]]
    meta: dict[str, Any] | None = None


class DraftSlugsResponse(ResponseModel):
    slugs: list[str]
    preview_version: CountField
    config: dict[str, Any]


class BootstrapResponse(ResponseModel):
    """`skipped`: the draft has pages already, and `overwrite` was not set."""

    status: Literal["bootstrapped", "skipped"]
    slugs: list[str]
    count: CountField | None = None
    reason: str | None = None


class PublishDifferenceResponse(ResponseModel):
    """What publishing would change, by slugs."""

    has_changes: bool
    added: list[str]
    changed: list[str]
    removed: list[str]


class EditionView(ResponseModel):
    """An edition of a site, and what it has changed."""

    number: CountField
    edition: str
    at: InstantField
    slugs: list[str]
    added: list[str]
    changed: list[str]
    removed: list[str]


class PublishedResponse(EditionView):
    """The edition that is published now."""

    status: Literal["ready"]


class SnapshotView(ResponseModel):
    """An edition that can be brought back."""

    number: CountField
    edition: str
    at: InstantField
    slugs: list[str]


class SnapshotListResponse(ResponseModel):
    """The editions that can be brought back, the newest first."""

    snapshots: list[SnapshotView]


class BlockVariationView(ResponseModel):
    """A variation. `patch` is that of the operation `update_props` that applies it."""

    id: str
    title: str
    summary: str
    patch: dict[str, Any]
    changed_keys: list[str]


class VariationsResponse(ResponseModel):
    """Variations of a block, as it was when they were written."""

    status: Literal["ok"]
    summary: str
    block_id: str
    block_type: str
    page_slug: str
    base_props: dict[str, Any]
    variations: list[BlockVariationView]
    planner_source: Literal["llm"]
    usage: dict[str, Any]


class RegisteredSiteResponse(ResponseModel):
    """The site as it is registered now. `config` has its `id`, and what was sent."""

    status: Literal["registered", "unchanged"]
    site_id: str
    config: dict[str, Any]
    warnings: list[str]


class SiteListResponse(ResponseModel):
    """The sites that are registered, each with its `id`, and what was sent."""

    sites: list[dict[str, Any]]


class PlannerSessionView(ResponseModel):
    """A session of the caller."""

    session: str
    site_id: str
    conversation_id: str
    updated_at: InstantField


class PlannerSessionListResponse(ResponseModel):
    sessions: list[PlannerSessionView]
    next_cursor: str | None = None


class PlannerCallerResponse(ResponseModel):
    """Who asks. What is in a session is there if the request names one."""

    tenant: str
    user: str
    capabilities: list[str]
    site_id: str
    published_page_count: CountField
    session: str | None = None
    slugs: list[str] | None = None
    page_count: CountField | None = None
    preview_version: CountField | None = None


class PublishLogResponse(ResponseModel):
    """`restorable`: the numbers of the editions whose pages are kept."""

    entries: list[EditionView]
    restorable: list[CountField]


class RestoredResponse(ResponseModel):
    """The draft after it got the pages of an edition."""

    status: Literal["restored"]
    preview_version: CountField
    slugs: list[str]
