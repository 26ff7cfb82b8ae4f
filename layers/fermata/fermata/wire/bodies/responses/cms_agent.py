"""Define the responses of the CMS agent's own protocol: an envelope around what is asked for."""

from typing import Any, Literal

from pydantic import ConfigDict

from fermata.wire.bodies.responses.common import CountField, InstantField, ResponseModel
from fermata.wire.bodies.responses.conversations import MessageView


class CmsMeta(ResponseModel):
    """When it was answered. `nextCursor` is there when a list goes on: send it as `cursor`."""

    timestamp: InstantField
    next_cursor: str | None = None


class CmsErrorView(ResponseModel):
    """What is wrong: a code for programs, and a sentence. `details` has what the error names besides."""

    code: str
    message: str
    details: dict[str, Any] | None = None


class CmsErrorResponse(ResponseModel):
    success: Literal[False]
    error: CmsErrorView
    meta: CmsMeta


class CmsTargetView(ResponseModel):
    site_id: str
    environment_id: str


class CmsSessionView(ResponseModel):
    id: str
    title: str
    model_id: str
    cms_target: CmsTargetView | None
    archived: bool
    created_at: InstantField
    updated_at: InstantField


class CmsSessionWithMessagesView(CmsSessionView):
    messages: list[MessageView]


class CmsSessionResponse(ResponseModel):
    success: Literal[True]
    data: CmsSessionView
    meta: CmsMeta


class CmsSessionWithMessagesResponse(ResponseModel):
    success: Literal[True]
    data: CmsSessionWithMessagesView
    meta: CmsMeta


class CmsSessionListResponse(ResponseModel):
    success: Literal[True]
    data: list[CmsSessionView]
    meta: CmsMeta


class CmsEntityView(ResponseModel):
    """Something that a tool call of the session was about."""

    type: str
    id: str
    name: str
    slug: str | None = None
    timestamp: str


class CmsMemoryResponse(ResponseModel):
    success: Literal[True]
    data: list[CmsEntityView]
    meta: CmsMeta


class CmsUsageView(ResponseModel):
    prompt_tokens: CountField
    completion_tokens: CountField
    total_tokens: CountField
    cost_usd: float


class CmsStepView(ResponseModel):
    """A response of the model: how long it took, what it used, and which tools it called."""

    step_number: CountField
    duration_ms: CountField
    usage: CmsUsageView
    tools: list[str]


class CmsLogView(ResponseModel):
    """A prompt of a session and how it was answered. `GET /v1/agent/stream/{traceId}` has its events for a day."""

    index: CountField
    trace_id: str
    prompt: str
    tools: list[str]
    timestamp: InstantField
    duration_ms: CountField
    usage: CmsUsageView
    steps: list[CmsStepView]


class CmsLogListResponse(ResponseModel):
    success: Literal[True]
    data: list[CmsLogView]
    meta: CmsMeta


class CmsDecisionView(ResponseModel):
    approved: bool
    reason: str
    timestamp: InstantField


class CmsDecidedView(ResponseModel):
    approval_id: str
    response: CmsDecisionView


class CmsDecisionResponse(ResponseModel):
    success: Literal[True]
    data: CmsDecidedView
    meta: CmsMeta


class CmsAnswerView(ResponseModel):
    """The answer to a prompt. `approvals` wait for a person."""

    model_config = ConfigDict(extra="forbid")

    trace_id: str
    session_id: str
    text: str
    tool_calls: list[dict[str, Any]]
    tool_results: list[dict[str, Any]]
    approvals: list[dict[str, Any]]
    finish_reason: Literal["stop", "max-steps", "cancelled", "approval-required", "in-progress"]
    usage: dict[str, Any] | None


class CmsAnswerResponse(ResponseModel):
    success: Literal[True]
    data: CmsAnswerView
    meta: CmsMeta


class CmsDeletedView(ResponseModel):
    id: str


class CmsDeletedResponse(ResponseModel):
    success: Literal[True]
    data: CmsDeletedView
    meta: CmsMeta
