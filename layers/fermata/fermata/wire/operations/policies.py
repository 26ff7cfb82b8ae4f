"""Define operations on the policy of approvals."""

from fermata.domain.caller import Capability
from fermata.wire.bodies.approval_requests import NewApprovalPolicy
from fermata.wire.operations.common import API_PREFIX
from fermata.wire.operations.operation import Operation, SuccessResponse

_POLICY_PATH = f"{API_PREFIX}/approval-policy"

SHOW_POLICY = Operation(
    name="showApprovalPolicy",
    function="credentials",
    method="GET",
    path=_POLICY_PATH,
    capabilities=(Capability.POLICIES, Capability.APPROVE),
    summary="See which calls need a person",
    responses=(SuccessResponse("The workspace's policy.", "ApprovalPolicyResponse"),),
)
SET_POLICY = Operation(
    name="setApprovalPolicy",
    function="credentials",
    method="PUT",
    path=_POLICY_PATH,
    capabilities=(Capability.POLICIES,),
    summary="Set which calls need a person",
    description="All of it at once. It applies to turns that start from now on. The first rule that matches a call "
    "counts; without one, the tool itself says whether a person has to approve it. A rule may name a tool, a toolset "
    "or an agent that comes later: `warnings` says which names nothing has now.",
    body=NewApprovalPolicy,
    responses=(SuccessResponse("The new policy.", "ApprovalPolicyResponse"),),
    errors={413: "The policy is too long for the rows of turns."},
)
