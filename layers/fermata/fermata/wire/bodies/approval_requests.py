"""Define the request bodies of operations on approvals."""

from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints, model_validator

from fermata.wire.bodies.fields import JSON_INTEGER, StrictBody

MAX_DECISION_REASON_CHARS = 1_000
MAX_DECISIONS = 25
MAX_POLICY_RULES = 100


class ApprovalDecision(StrictBody):
    """A decision about a call. `input` replaces the call's whole input, and goes with an approval only."""

    approved: bool
    reason: Annotated[str, Field(max_length=MAX_DECISION_REASON_CHARS)] = ""
    input: dict[str, Any] | None = None
    input_hash: Annotated[str, Field(pattern="^([0-9a-f]{64})?$")] = ""

    @model_validator(mode="after")
    def _check_input(self) -> "ApprovalDecision":
        if self.input is not None and not self.approved:
            raise ValueError("'input' goes with an approval only")
        return self


class NamedDecision(ApprovalDecision):
    """A decision about one of several approvals."""

    approval_id: Annotated[str, Field(min_length=1, max_length=120)]


class ApprovalDecisions(StrictBody):
    """Several decisions. Each is made for itself, in their order."""

    decisions: Annotated[list[NamedDecision], Field(min_length=1, max_length=MAX_DECISIONS)]


_Name = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200)]
_Names = Annotated[list[_Name], Field(max_length=200)]


class NewPolicyRule(StrictBody):
    """What becomes of the calls that meet all conditions. A condition that is left out is met by every call."""

    effect: Literal["allow", "ask", "deny"]
    agents: _Names = Field(default_factory=list)
    tools: _Names = Field(default_factory=list)
    toolsets: _Names = Field(default_factory=list)
    capability: Literal["read", "write"] | None = None
    risks: Annotated[list[Literal["safe", "moderate", "high"]], Field(max_length=3)] = Field(default_factory=list)


class NewApprovalPolicy(StrictBody):
    """Which calls need a person. A member that is left out asks for nothing.

    `turn_cost_usd` is what a turn may cost before a person has to let it go on. `wait_seconds` is how long a call waits
    for a decision. With `separate_approver` the user who started a turn does not decide about its calls.
    """

    rules: Annotated[list[NewPolicyRule], Field(max_length=MAX_POLICY_RULES)] = Field(default_factory=list)
    writes_after_outside_content: bool = False
    new_tools: bool = False
    turn_cost_usd: Annotated[float, Field(gt=0, le=1_000_000)] | None = None
    separate_approver: bool = False
    wait_seconds: Annotated[int, Field(ge=60, le=30 * 86_400), JSON_INTEGER] | None = None
