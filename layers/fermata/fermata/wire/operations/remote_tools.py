"""Define operations on the remote tools of a tenant."""

from fermata.domain.caller import Capability
from fermata.wire.bodies.tool_requests import BuiltInToolSettings, NewRemoteTool, RemoteToolChange
from fermata.wire.operations.common import OK_RESPONSES
from fermata.wire.operations.operation import Operation, RequestParameter, SuccessResponse

_CAN_MANAGE_TOOLS = (Capability.TOOLS,)
_TOOLS_PATH = "/tools"
_TOOL_PATH = "/tools/{name}"
_NAME = RequestParameter("name", "The tool's name, in any case.", {"type": "string"}, required=True, location="path")
_NO_TOOL = {404: "The tenant has no such tool."}
_CHANGED = {409: "Another request has just changed the tools."}

LIST_REMOTE_TOOLS = Operation(
    name="listRemoteTools",
    function="credentials",
    method="GET",
    path=_TOOLS_PATH,
    capabilities=_CAN_MANAGE_TOOLS,
    summary="List the remote tools",
    description="Those of the tenant, and those of the deployment. The values of their headers are never shown.",
    responses=(SuccessResponse("By name.", "RemoteToolListResponse"),),
)
REGISTER_REMOTE_TOOL = Operation(
    name="registerRemoteTool",
    function="credentials",
    method="POST",
    path=f"{_TOOLS_PATH}/register",
    capabilities=_CAN_MANAGE_TOOLS,
    summary="Register a remote tool",
    description="Turns that start from now on are offered it. The signing secret of a new tool is shown once.",
    body=NewRemoteTool,
    responses=(SuccessResponse("The tool.", "NewRemoteToolResponse", 201),),
    errors={
        400: "The manifest is invalid (`code` is `invalid_manifest`, `field` names the member), or the endpoint or a "
        "header is not allowed.",
        409: "A built-in tool has this name, or a tool has it and `replace` is not true.",
    },
)
CHANGE_REMOTE_TOOL = Operation(
    name="changeRemoteTool",
    function="credentials",
    method="PATCH",
    path=_TOOL_PATH,
    capabilities=_CAN_MANAGE_TOOLS,
    summary="Enable or disable a remote tool, or change its headers or its signing secret",
    parameters=(_NAME,),
    body=RemoteToolChange,
    responses=(SuccessResponse("The tool, with its signing secret if that is new.", "NewRemoteToolResponse"),),
    errors=_NO_TOOL | _CHANGED,
)
TURN_ON_BUILT_IN_TOOL = Operation(
    name="turnOnBuiltInTool",
    function="credentials",
    method="PUT",
    path=_TOOL_PATH,
    capabilities=_CAN_MANAGE_TOOLS,
    summary="Turn on a built-in tool, or replace its key",
    description="unsplash.search, unsplash.get_by_id, image.generate, gdrive.browse, web_quickSearch, "
    "web_fetchContent, web_deepResearch, pexels_searchPhotos, http_get and http_post are there "
    "once they are turned on. `DELETE` turns one off. `http_get` and `http_post` need the option `hosts`.",
    parameters=(_NAME,),
    body=BuiltInToolSettings,
    responses=(SuccessResponse("The tool, without its key.", "NewRemoteToolResponse"),),
    errors={400: "The key or an option is missing or not known.", 404: "There is no such built-in tool."} | _CHANGED,
)
REMOVE_REMOTE_TOOL = Operation(
    name="removeRemoteTool",
    function="credentials",
    method="DELETE",
    path=_TOOL_PATH,
    capabilities=_CAN_MANAGE_TOOLS,
    summary="Remove a remote tool",
    description="Turns that run may not call it any more.",
    parameters=(_NAME,),
    responses=OK_RESPONSES,
    errors=_NO_TOOL | _CHANGED,
)
