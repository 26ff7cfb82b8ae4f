"""Define operations that export and erase the data of a conversation, a user or the tenant."""

from fermata.domain.caller import Capability
from fermata.wire.bodies.requests import NewPrivacyJob
from fermata.wire.operations.common import API_PREFIX
from fermata.wire.operations.operation import Operation, SuccessResponse

_CAN_MANAGE_DATA = (Capability.DATA,)
_ACCEPTED = (SuccessResponse("It is stored, and begins within five minutes.", "PrivacyJobResponse", 202),)
_SHOWN = (SuccessResponse("Its progress, or its result.", "PrivacyJobResponse"),)

START_EXPORT = Operation(
    name="startExport",
    function="credentials",
    method="POST",
    path=f"{API_PREFIX}/exports",
    capabilities=_CAN_MANAGE_DATA,
    summary="Export the data of a conversation, a user or the tenant",
    body=NewPrivacyJob,
    responses=_ACCEPTED,
)
SHOW_EXPORT = Operation(
    name="showExport",
    function="credentials",
    method="GET",
    path=f"{API_PREFIX}/exports/{{id}}",
    capabilities=_CAN_MANAGE_DATA,
    summary="See an export, and download it when it is done",
    description="Its files are gzipped NDJSON, and are deleted after a day.",
    responses=_SHOWN,
    errors={404: "The tenant has no such export."},
)
START_ERASURE = Operation(
    name="startErasure",
    function="credentials",
    method="POST",
    path=f"{API_PREFIX}/erasures",
    capabilities=_CAN_MANAGE_DATA,
    summary="Erase the data of a conversation, a user or the tenant",
    description="Turns that run are cancelled. It cannot be undone. `tenant` has to be the caller's own tenant.",
    body=NewPrivacyJob,
    responses=_ACCEPTED,
)
SHOW_ERASURE = Operation(
    name="showErasure",
    function="credentials",
    method="GET",
    path=f"{API_PREFIX}/erasures/{{id}}",
    capabilities=_CAN_MANAGE_DATA,
    summary="See the progress of an erasure, or its receipt",
    responses=_SHOWN,
    errors={404: "The tenant has no such erasure."},
)
