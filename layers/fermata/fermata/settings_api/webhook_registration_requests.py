"""Handle requests on webhooks: they are registered, changed and removed, and their deliveries listed and repeated."""

from fermata.webhooks import redeliver_event, webhook_registry
from fermata.wire.bodies.webhook_requests import NewWebhook, WebhookSettings
from fermata.wire.http.messages import Response
from fermata.wire.http.routing import RequestContext, Router
from fermata.wire.operations import webhooks

WEBHOOK_ROUTES = Router("credentials")


@WEBHOOK_ROUTES.handles(webhooks.LIST_WEBHOOKS)
def _list_webhooks(context: RequestContext) -> Response:
    return Response(200, {"webhooks": webhook_registry.list_webhooks(context.resources, context.caller.tenant)})


@WEBHOOK_ROUTES.handles(webhooks.ADD_WEBHOOK)
def _add_webhook(context: RequestContext) -> Response:
    body = context.parse_body(NewWebhook)
    stored = webhook_registry.add_webhook(
        context.resources, context.caller, body.url, body.events or (), may_answer=body.may_answer
    )
    return Response(201, {"webhook": stored.view, "signingSecret": stored.signing_secret})


@WEBHOOK_ROUTES.handles(webhooks.CHANGE_WEBHOOK)
def _change_webhook(context: RequestContext) -> Response:
    body = context.parse_body(WebhookSettings)
    change = webhook_registry.WebhookChange(body.url, body.events, body.enabled, body.may_answer)
    stored = webhook_registry.change_webhook(context.resources, context.caller, context.path_parameters["id"], change)
    return Response(200, {"webhook": stored.view})


@WEBHOOK_ROUTES.handles(webhooks.REMOVE_WEBHOOK)
def _remove_webhook(context: RequestContext) -> Response:
    webhook_registry.remove_webhook(context.resources, context.caller, context.path_parameters["id"])
    return Response(200, {"ok": True})


@WEBHOOK_ROUTES.handles(webhooks.LIST_DELIVERIES)
def _list_deliveries(context: RequestContext) -> Response:
    found = redeliver_event.list_webhook_deliveries(context.resources, context.caller, context.path_parameters["id"])
    return Response(200, {"deliveries": found})


@WEBHOOK_ROUTES.handles(webhooks.REDELIVER)
def _redeliver(context: RequestContext) -> Response:
    parameters = context.path_parameters
    redeliver_event.redeliver_event(context.resources, context.caller, parameters["id"], parameters["deliveryId"])
    return Response(202, {"ok": True})
