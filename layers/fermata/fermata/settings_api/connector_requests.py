"""Handle requests on MCP connectors, with which assistants call the MCP endpoint for a user."""

from fermata.content.space_access import find_space_for_caller
from fermata.wire.auth import mcp_connector_store
from fermata.wire.bodies.requests import NewConnector
from fermata.wire.http.messages import Response
from fermata.wire.http.routing import RequestContext, Router
from fermata.wire.operations import mcp

CONNECTOR_ROUTES = Router("credentials")


@CONNECTOR_ROUTES.handles(mcp.LIST_CONNECTORS)
def _list_connectors(context: RequestContext) -> Response:
    return Response(200, {"connectors": mcp_connector_store.list_connector_views(context.resources, context.caller)})


@CONNECTOR_ROUTES.handles(mcp.CREATE_CONNECTOR)
def _create_connector(context: RequestContext) -> Response:
    body = context.parse_body(NewConnector)
    connector, token = mcp_connector_store.create_connector(
        context.resources,
        context.caller,
        body.label,
        body.type,
        body.capabilities,
        expires_in_seconds=None if body.ttl_days is None else body.ttl_days * 86_400,
        space=_find_connector_space(context, body),
    )
    return Response(201, {"connector": connector.to_view(None), "token": token})


def _find_connector_space(context: RequestContext, body: NewConnector) -> str:
    """Return the name of the space that a connector names, if what it is allowed lets it read the space."""
    if body.space is None:
        return ""
    capabilities = context.caller.capabilities & frozenset(body.capabilities)
    allowed = context.caller.model_copy(update={"capabilities": capabilities})
    return find_space_for_caller(context.resources, allowed, body.space)[0].name


@CONNECTOR_ROUTES.handles(mcp.REVOKE_CONNECTOR)
def _revoke_connector(context: RequestContext) -> Response:
    mcp_connector_store.revoke_connector(context.resources, context.caller, context.path_parameters["id"])
    return Response(200, {"revoked": True})
