"""Define operations on the webhooks of a tenant."""

from fermata.domain.caller import Capability
from fermata.wire.bodies.webhook_requests import NewWebhook, WebhookSettings
from fermata.wire.operations.common import API_PREFIX, OK_RESPONSES
from fermata.wire.operations.operation import Operation, RequestParameter, SuccessResponse

_CAN_MANAGE_WEBHOOKS = (Capability.TOOLS,)
_WEBHOOKS_PATH = f"{API_PREFIX}/webhooks"
_WEBHOOK_PATH = f"{_WEBHOOKS_PATH}/{{id}}"
_NO_WEBHOOK = {404: "The tenant has no such webhook."}
_CHANGED = {409: "Another request has just changed the webhooks."}

LIST_WEBHOOKS = Operation(
    name="listWebhooks",
    function="credentials",
    method="GET",
    path=_WEBHOOKS_PATH,
    capabilities=_CAN_MANAGE_WEBHOOKS,
    summary="List the webhooks",
    responses=(SuccessResponse("The oldest first.", "WebhookListResponse"),),
)
ADD_WEBHOOK = Operation(
    name="addWebhook",
    function="credentials",
    method="POST",
    path=_WEBHOOKS_PATH,
    capabilities=_CAN_MANAGE_WEBHOOKS,
    summary="Register a webhook",
    description="It is told about turns that start from now on. Its signing secret is shown once. If its responses may "
    "answer, the caller needs what they may do: `ai.tools.write` for tool requests, `ai.tools.approve` for approvals.",
    body=NewWebhook,
    responses=(SuccessResponse("The webhook.", "NewWebhookResponse", 201),),
    errors={400: "The body is not as described, or the address is not allowed."} | _CHANGED,
)
CHANGE_WEBHOOK = Operation(
    name="changeWebhook",
    function="credentials",
    method="PATCH",
    path=_WEBHOOK_PATH,
    capabilities=_CAN_MANAGE_WEBHOOKS,
    summary="Change a webhook, or turn it on or off",
    body=WebhookSettings,
    responses=(SuccessResponse("The webhook.", "WebhookResponse"),),
    errors=_NO_WEBHOOK | _CHANGED,
)
REMOVE_WEBHOOK = Operation(
    name="removeWebhook",
    function="credentials",
    method="DELETE",
    path=_WEBHOOK_PATH,
    capabilities=_CAN_MANAGE_WEBHOOKS,
    summary="Remove a webhook",
    description="What waits for it is not delivered any more.",
    responses=OK_RESPONSES,
    errors=_NO_WEBHOOK | _CHANGED,
)
LIST_DELIVERIES = Operation(
    name="listDeliveries",
    function="credentials",
    method="GET",
    path=f"{_WEBHOOK_PATH}/deliveries",
    capabilities=_CAN_MANAGE_WEBHOOKS,
    summary="See what was delivered to a webhook, and what was not",
    responses=(SuccessResponse("The newest 50, the newest first.", "DeliveryListResponse"),),
    errors=_NO_WEBHOOK,
)
REDELIVER = Operation(
    name="redeliver",
    function="credentials",
    method="POST",
    path=f"{_WEBHOOK_PATH}/deliveries/{{deliveryId}}/redeliver",
    capabilities=_CAN_MANAGE_WEBHOOKS,
    summary="Deliver an event again",
    parameters=(
        RequestParameter("deliveryId", "Its `id` in the list.", {"type": "string"}, required=True, location="path"),
    ),
    responses=(SuccessResponse("It is queued.", "OkResponse", 202),),
    errors={404: "There is no such webhook or delivery."},
)
