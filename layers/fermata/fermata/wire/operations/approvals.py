"""Define operations on approvals: which calls wait for a person, and what the person decides."""

from fermata.domain.caller import Capability
from fermata.wire.bodies.approval_requests import ApprovalDecision, ApprovalDecisions
from fermata.wire.operations.common import API_PREFIX, make_integer_parameter
from fermata.wire.operations.operation import Operation, RequestParameter, SuccessResponse

_PATH = f"{API_PREFIX}/approvals"
_CAN_APPROVE = (Capability.APPROVE,)
_APPROVAL_ID = RequestParameter(
    "approvalId",
    "The approval, as `approvalRequested`, the turn or the list names it.",
    {"type": "string", "minLength": 1, "maxLength": 120},
    required=True,
    location="path",
)

LIST_APPROVALS = Operation(
    name="listApprovals",
    function="tool_result",
    method="GET",
    path=_PATH,
    capabilities=_CAN_APPROVE,
    summary="List the calls and plans that wait for a decision",
    description="Those of the whole workspace, in the scopes that the caller may act in, the oldest first. A long "
    "input is shortened.",
    parameters=(
        make_integer_parameter("limit", "The greatest number of approvals; 50 by default.", 0, 100),
        RequestParameter("cursor", "`nextCursor` of the page before.", {"type": "string"}),
    ),
    responses=(SuccessResponse("A page of approvals.", "ApprovalListResponse"),),
    errors={400: "The limit or the cursor is malformed."},
)
DECIDE_APPROVALS = Operation(
    name="decideApprovals",
    function="tool_result",
    method="POST",
    path=_PATH,
    capabilities=_CAN_APPROVE,
    summary="Decide about several calls",
    description="Each decision is made for itself, in their order. `results` has the status and the approval or the "
    "error that it would have been answered with alone.",
    body=ApprovalDecisions,
    responses=(SuccessResponse("What has become of each.", "ApprovalResultsResponse"),),
)
LIST_DECISIONS = Operation(
    name="listDecisions",
    function="tool_result",
    method="GET",
    path=f"{API_PREFIX}/approval-decisions",
    capabilities=_CAN_APPROVE,
    summary="List what was decided about calls and plans",
    description="From the workspace's trail, the newest first. The hash of an entry covers the one before. Names and "
    "reasons that were erased are missing.",
    parameters=(
        make_integer_parameter("limit", "The greatest number of decisions; 50 by default.", 0, 100),
        RequestParameter("cursor", "`nextCursor` of the page before.", {"type": "string"}),
    ),
    responses=(SuccessResponse("A page of decisions.", "DecisionListResponse"),),
    errors={400: "The limit or the cursor is malformed."},
)
SHOW_APPROVAL = Operation(
    name="showApproval",
    function="tool_result",
    method="GET",
    path=f"{_PATH}/{{approvalId}}",
    capabilities=_CAN_APPROVE,
    summary="Show an approval",
    description="While it waits, with the whole input of its call. It is kept as long as its turn.",
    parameters=(_APPROVAL_ID,),
    responses=(SuccessResponse("The approval.", "ApprovalResponse"),),
    errors={404: "There is no such approval, or it has expired with its turn."},
)
DECIDE_APPROVAL = Operation(
    name="decideApproval",
    function="tool_result",
    method="POST",
    path=f"{_PATH}/{{approvalId}}",
    capabilities=_CAN_APPROVE,
    summary="Approve or deny a call",
    description="The first decision counts. It is about the call that was shown: with `inputHash` it is refused if "
    "the call has another input. An approver may send another `input`, which has to fit the tool; the model is told. "
    "The same decision again changes nothing.",
    parameters=(_APPROVAL_ID,),
    body=ApprovalDecision,
    responses=(SuccessResponse("The approval with the decision.", "ApprovalResponse"),),
    errors={
        400: "The changed input does not fit the tool.",
        403: "The policy lets another person than the one who started the turn decide.",
        404: "There is no such approval, or it has expired with its turn.",
        409: "It was decided already, nobody decided in time, its turn has ended, its tool was changed, or the call "
        "has another input.",
    },
)
