"""Handle requests on remote tools: those that a tenant registers, and built-in ones that it turns on."""

from typing import Any

from fermata.remote_tools import tool_registry
from fermata.remote_tools.enable_built_in_tool import turn_on_built_in_tool
from fermata.remote_tools.list_tool_views import list_tool_views
from fermata.wire.bodies.tool_requests import BuiltInToolSettings, NewRemoteTool, RemoteToolChange
from fermata.wire.http.messages import Response
from fermata.wire.http.routing import RequestContext, Router
from fermata.wire.operations import remote_tools

REMOTE_TOOL_ROUTES = Router("credentials")


@REMOTE_TOOL_ROUTES.handles(remote_tools.LIST_REMOTE_TOOLS)
def _list_remote_tools(context: RequestContext) -> Response:
    return Response(200, {"tools": list_tool_views(context.resources, context.caller.tenant)})


@REMOTE_TOOL_ROUTES.handles(remote_tools.REGISTER_REMOTE_TOOL)
def _register_remote_tool(context: RequestContext) -> Response:
    body = context.parse_body(NewRemoteTool)
    stored = tool_registry.register_tool(
        context.resources,
        context.caller,
        body.manifest,
        body.endpoint,
        headers=body.static_headers,
        scopes=body.scopes or (),
        forwards_authorization=body.forward_authorization,
        replace=body.replace,
    )
    return Response(201, _to_tool_body(stored))


@REMOTE_TOOL_ROUTES.handles(remote_tools.CHANGE_REMOTE_TOOL)
def _change_remote_tool(context: RequestContext) -> Response:
    body = context.parse_body(RemoteToolChange)
    change = tool_registry.ToolChange(body.enabled, body.static_headers, body.rotate_signing_secret)
    name = context.path_parameters["name"]
    return Response(200, _to_tool_body(tool_registry.change_tool(context.resources, context.caller, name, change)))


@REMOTE_TOOL_ROUTES.handles(remote_tools.TURN_ON_BUILT_IN_TOOL)
def _turn_on_tool(context: RequestContext) -> Response:
    body = context.parse_body(BuiltInToolSettings)
    name = context.path_parameters["name"]
    stored = turn_on_built_in_tool(
        context.resources, context.caller, name, api_key=body.api_key, options=body.options or {}
    )
    return Response(200, _to_tool_body(stored))


@REMOTE_TOOL_ROUTES.handles(remote_tools.REMOVE_REMOTE_TOOL)
def _remove_remote_tool(context: RequestContext) -> Response:
    tool_registry.remove_tool(context.resources, context.caller, context.path_parameters["name"])
    return Response(200, {"ok": True})


def _to_tool_body(stored: tool_registry.StoredTool) -> dict[str, Any]:
    secret = {"signingSecret": stored.signing_secret} if stored.signing_secret else {}
    return {"tool": stored.view} | secret
