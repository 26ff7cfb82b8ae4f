"""Define operations on usage and budgets."""

from fermata.domain.caller import Capability
from fermata.wire.bodies.requests import NewBudgets
from fermata.wire.operations.common import API_PREFIX, CAN_MANAGE_PROVIDERS
from fermata.wire.operations.operation import Operation, RequestParameter, SuccessResponse

_BUDGETS_PATH = f"{API_PREFIX}/budgets"

SHOW_AUDIT = Operation(
    name="showAudit",
    function="api",
    method="GET",
    path=f"{API_PREFIX}/audit",
    capabilities=(Capability.AUDIT,),
    summary="See the usage",
    description="Sums of all provider requests, by user, scope, model and day. They are a few seconds behind.",
    parameters=(
        RequestParameter(
            "since", "The beginning, an ISO instant; 30 days ago when it cannot be read.", {"type": "string"}
        ),
        RequestParameter("tz", "The time zone of the days, an IANA name; UTC when it is missing.", {"type": "string"}),
        RequestParameter("billable", "`true`: every row also has its billable cost.", {"type": "string"}),
    ),
    responses=(SuccessResponse("The usage since then.", "AuditResponse"),),
)
SHOW_BUDGETS = Operation(
    name="showBudgets",
    function="api",
    method="GET",
    path=_BUDGETS_PATH,
    capabilities=(Capability.AUDIT, Capability.PROVIDERS),
    summary="See the budgets, and what is left of them",
    responses=(SuccessResponse("The limits, what is spent, and when they renew.", "BudgetsResponse"),),
)
SET_BUDGETS = Operation(
    name="setBudgets",
    function="api",
    method="PUT",
    path=_BUDGETS_PATH,
    capabilities=CAN_MANAGE_PROVIDERS,
    summary="Set the budgets",
    description="All limits at once: an amount that is left out is unlimited. They apply to turns that start from now "
    "on, and to the next rounds of turns that were started under a budget.",
    body=NewBudgets,
    responses=(SuccessResponse("The new budgets.", "BudgetsResponse"),),
)
