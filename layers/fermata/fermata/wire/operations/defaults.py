"""Define operations on the default model of each scope."""

from fermata.wire.bodies.requests import NewDefault
from fermata.wire.operations.common import API_PREFIX, CAN_CHAT, CAN_MANAGE_PROVIDERS
from fermata.wire.operations.operation import Operation, SuccessResponse

_DEFAULTS_PATH = f"{API_PREFIX}/defaults"
_DEFAULT_PATH = f"{_DEFAULTS_PATH}/{{scope}}"
_UNKNOWN_SCOPE = {400: "The scope is unknown."}

SHOW_DEFAULTS = Operation(
    name="showDefaults",
    function="api",
    method="GET",
    path=_DEFAULTS_PATH,
    capabilities=CAN_CHAT,
    summary="See each scope's default model",
    responses=(SuccessResponse("The scopes that have one.", "DefaultListResponse"),),
)
SET_DEFAULT = Operation(
    name="setDefault",
    function="api",
    method="PUT",
    path=_DEFAULT_PATH,
    capabilities=CAN_MANAGE_PROVIDERS,
    summary="Set a scope's default model",
    body=NewDefault,
    responses=(SuccessResponse("The default.", "DefaultResponse"),),
    errors={400: "The body is not as described, the scope is unknown, or the credential does not exist."},
)
CLEAR_DEFAULT = Operation(
    name="clearDefault",
    function="api",
    method="DELETE",
    path=_DEFAULT_PATH,
    capabilities=CAN_MANAGE_PROVIDERS,
    summary="Clear a scope's default model",
    responses=(SuccessResponse("The scope has no default now.", status=204),),
    errors=_UNKNOWN_SCOPE,
)
