"""Define operations on API keys, with which a tenant's servers call."""

from fermata.domain.caller import Capability
from fermata.wire.bodies.requests import ApiKeyRotation, NewApiKey
from fermata.wire.bodies.studio_requests import ApiKeyChange
from fermata.wire.operations.common import API_PREFIX, OK_RESPONSES
from fermata.wire.operations.operation import Operation, SuccessResponse

_CAN_MANAGE_KEYS = (Capability.KEYS,)
_API_KEYS_PATH = f"{API_PREFIX}/api-keys"
_API_KEY_PATH = f"{_API_KEYS_PATH}/{{id}}"
_NO_API_KEY = {404: "The tenant has no such API key."}
_KEY_ROTATED = {409: "Another request has rotated the key meanwhile."}

LIST_API_KEYS = Operation(
    name="listApiKeys",
    function="credentials",
    method="GET",
    path=_API_KEYS_PATH,
    capabilities=_CAN_MANAGE_KEYS,
    summary="List the tenant's API keys",
    description="Without their secrets, also those that were revoked within a month. `lastUsedAt` is up to an hour "
    "behind.",
    responses=(SuccessResponse("The newest first.", "ApiKeyListResponse"),),
)
CREATE_API_KEY = Operation(
    name="createApiKey",
    function="credentials",
    method="POST",
    path=_API_KEYS_PATH,
    capabilities=_CAN_MANAGE_KEYS,
    summary="Create an API key for a server",
    description="It may do no more than the caller may, and not manage keys. Its text is in this response only. With "
    "`conversation` it is a key of the Conversation API, and good for nothing else.",
    body=NewApiKey,
    responses=(SuccessResponse("The new key, with its text.", "NewApiKeyResponse", 201),),
    errors={
        402: "The plan of the workspace is locked, or has no Conversation API, no more keys, or no restrictions.",
        404: "There is no such content space.",
    },
)
CHANGE_API_KEY = Operation(
    name="changeApiKey",
    function="credentials",
    method="PATCH",
    path=_API_KEY_PATH,
    capabilities=_CAN_MANAGE_KEYS,
    summary="Change the rules of a key of the Conversation API",
    description="The next message and the next call of a tool follow them, also of a turn that runs.",
    body=ApiKeyChange,
    responses=(SuccessResponse("The key.", "ApiKeyResponse"),),
    errors=_NO_API_KEY
    | {
        400: "The body is not as described, or it is the key of a server.",
        402: "The plan of the workspace is locked, or has no restrictions.",
        409: "Another request has changed the key meanwhile.",
    },
)
ROTATE_API_KEY = Operation(
    name="rotateApiKey",
    function="credentials",
    method="POST",
    path=f"{_API_KEY_PATH}/rotate",
    capabilities=_CAN_MANAGE_KEYS,
    summary="Give an API key a new secret",
    description="The old one stays valid for a day, or as long as `overlapSeconds` says. What the key owns stays its "
    "own.",
    body=ApiKeyRotation,
    requires_body=False,
    responses=(SuccessResponse("The key, with its new text.", "NewApiKeyResponse"),),
    errors=_NO_API_KEY | _KEY_ROTATED,
)
REVOKE_API_KEY = Operation(
    name="revokeApiKey",
    function="credentials",
    method="DELETE",
    path=_API_KEY_PATH,
    capabilities=_CAN_MANAGE_KEYS,
    summary="Revoke an API key",
    description="It is refused everywhere within a minute.",
    responses=OK_RESPONSES,
    errors=_NO_API_KEY,
)
