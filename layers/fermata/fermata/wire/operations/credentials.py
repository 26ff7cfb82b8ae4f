"""Define operations on provider credentials and the models they open."""

from fermata.domain.caller import Capability
from fermata.wire.bodies.requests import CredentialChange, NewCredential
from fermata.wire.operations.common import API_PREFIX, CAN_MANAGE_PROVIDERS, OK_RESPONSES
from fermata.wire.operations.operation import Operation, RequestParameter, SuccessResponse

_CREDENTIALS_PATH = f"{API_PREFIX}/credentials"
_CREDENTIAL_PATH = f"{_CREDENTIALS_PATH}/{{id}}"
_NO_CREDENTIAL = {404: "The caller has no such credential."}
_CREDENTIAL_RESPONSE = SuccessResponse("The credential.", "CredentialResponse")
_NO_OWN_KEYS = "The plan of the workspace is locked, or has no own keys of providers."

LIST_CREDENTIALS = Operation(
    name="listCredentials",
    function="credentials",
    method="GET",
    path=_CREDENTIALS_PATH,
    capabilities=CAN_MANAGE_PROVIDERS,
    summary="List the caller's provider credentials",
    responses=(SuccessResponse("The newest first.", "CredentialListResponse"),),
)
CREATE_CREDENTIAL = Operation(
    name="createCredential",
    function="credentials",
    method="POST",
    path=_CREDENTIALS_PATH,
    capabilities=CAN_MANAGE_PROVIDERS,
    summary="Enter a provider's key or address",
    description="Scopes without a default get one from it if the provider can be reached. The key is never shown "
    "again.",
    body=NewCredential,
    responses=(SuccessResponse("The new credential.", "CredentialResponse", 201),),
    errors={
        400: "The body is not as described, or the provider or address cannot be used.",
        402: _NO_OWN_KEYS,
        409: "The caller has a credential of this provider and label.",
    },
)
SHOW_CREDENTIAL = Operation(
    name="showCredential",
    function="credentials",
    method="GET",
    path=_CREDENTIAL_PATH,
    capabilities=CAN_MANAGE_PROVIDERS,
    summary="See a credential",
    responses=(_CREDENTIAL_RESPONSE,),
    errors=_NO_CREDENTIAL,
)
CHANGE_CREDENTIAL = Operation(
    name="changeCredential",
    function="credentials",
    method="PUT",
    path=_CREDENTIAL_PATH,
    capabilities=CAN_MANAGE_PROVIDERS,
    summary="Change a credential's label, key or address",
    body=CredentialChange,
    responses=(_CREDENTIAL_RESPONSE,),
    errors={
        400: "The body is not as described, or does not fit this credential.",
        402: _NO_OWN_KEYS,
        409: "The caller has a credential of this provider and label.",
    }
    | _NO_CREDENTIAL,
)
DELETE_CREDENTIAL = Operation(
    name="deleteCredential",
    function="credentials",
    method="DELETE",
    path=_CREDENTIAL_PATH,
    capabilities=CAN_MANAGE_PROVIDERS,
    summary="Remove a credential",
    responses=OK_RESPONSES,
    errors=_NO_CREDENTIAL | {409: "It is a scope's default."},
)
TRY_CREDENTIAL = Operation(
    name="tryCredential",
    function="credentials",
    method="POST",
    path=f"{_CREDENTIAL_PATH}/test",
    capabilities=CAN_MANAGE_PROVIDERS,
    summary="Test a credential",
    responses=(SuccessResponse("Whether it opens any models.", "CredentialTestResponse"),),
    errors=_NO_CREDENTIAL,
)
LIST_MODELS = Operation(
    name="listModels",
    function="credentials",
    method="GET",
    path=f"{API_PREFIX}/providers/{{id}}/models",
    capabilities=(Capability.CHAT, Capability.PROVIDERS),
    summary="List the models a credential opens",
    parameters=(
        RequestParameter(
            "credentialId", "The credential whose models are listed.", {"type": "string", "minLength": 1}, required=True
        ),
    ),
    responses=(SuccessResponse("In the order to show them.", "ModelListResponse"),),
    errors={
        400: "The provider is unknown, or the credential is for another one.",
        404: "The tenant has no such credential.",
        409: "The key can no longer be opened: enter it again.",
        502: "The provider refused.",
    },
)
