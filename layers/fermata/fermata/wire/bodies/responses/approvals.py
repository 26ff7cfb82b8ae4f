"""Define the response bodies of operations on approvals."""

from typing import Any, Literal

from fermata.wire.bodies.responses.common import CountField, InstantField, ResponseModel, UsdField


class ApprovalView(ResponseModel):
    """A call that waits for a person, or did. `reasons`: `tool`, `rule`, `outsideContent`, `newTool`, `turnCost`.

    An edit plan that waits has `pendingPlanId` and the reason `destructivePlan` or `planFirst`. Its `input` has its
    summary and its operations, and `plan` says what was normalized and why it is held.

    `expired`: nobody decided in time; `stale`: the tool was changed meanwhile. Both count as denied. `cancelled`: the
    turn has ended without a decision.
    """

    approval_id: str
    state: Literal["waiting", "approved", "denied", "expired", "stale", "cancelled"]
    bridge_id: str
    conversation_id: str
    user_id: str
    scope: str
    agent: str
    tool_call_id: str
    tool_name: str
    description: str
    risk: Literal["safe", "moderate", "high"]
    capability: Literal["read", "write"]
    reasons: list[str]
    input: dict[str, Any]
    input_hash: str
    requested_at: InstantField
    deadline: InstantField
    decided_at: InstantField | None = None
    decided_by: str | None = None
    reason: str | None = None
    decided_input_hash: str | None = None
    pending_plan_id: str | None = None
    plan: dict[str, Any] | None = None


class PolicyRuleView(ResponseModel):
    effect: Literal["allow", "ask", "deny"]
    agents: list[str]
    tools: list[str]
    toolsets: list[str]
    capability: Literal["read", "write"] | None = None
    risks: list[Literal["safe", "moderate", "high"]]


class ApprovalPolicyResponse(ResponseModel):
    """A workspace's policy. `updatedAt` and `updatedBy` are there if it was ever set.

    `warnings` are about names in rules that nothing has now. They are there when the policy was just set.
    """

    rules: list[PolicyRuleView]
    writes_after_outside_content: bool
    new_tools: bool
    turn_cost_usd: UsdField | None = None
    separate_approver: bool
    wait_seconds: int | None = None
    updated_at: InstantField | None = None
    updated_by: str | None = None
    warnings: list[str] | None = None


class ApprovalResponse(ResponseModel):
    approval: ApprovalView


class ApprovalListResponse(ResponseModel):
    """A page. `nextCursor` is there if further approvals may follow."""

    approvals: list[ApprovalView]
    next_cursor: str | None = None


class ApprovalResult(ResponseModel):
    """What one of several decisions was answered: the approval, or the error."""

    approval_id: str
    status: int
    approval: ApprovalView | None = None
    error: str | None = None


class ApprovalResultsResponse(ResponseModel):
    """The results of several decisions, in their order."""

    results: list[ApprovalResult]


class DecisionView(ResponseModel):
    """An entry of the trail of decisions. `kind` is `toolApproval` or `planApproval`."""

    number: CountField
    at: InstantField
    kind: Literal["toolApproval", "planApproval"]
    approval_id: str
    bridge_id: str
    tool: str
    agent: str
    outcome: Literal["approved", "denied", "expired", "stale"]
    reasons: list[str]
    input_hash: str
    decided_input_hash: str
    asked_for: str | None = None
    decided_by: str | None = None
    reason: str | None = None
    hash: str


class DecisionListResponse(ResponseModel):
    """A page. `nextCursor` is there if older decisions follow."""

    decisions: list[DecisionView]
    next_cursor: str | None = None
