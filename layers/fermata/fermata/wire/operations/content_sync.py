"""Define the operation by which clients keep a copy of a project."""

from fermata.wire.operations.common import API_PREFIX, CAN_READ_CONTENT
from fermata.wire.operations.operation import Operation, RequestParameter, SuccessResponse

SYNC_CONTENT = Operation(
    name="syncContent",
    function="credentials",
    method="GET",
    path=f"{API_PREFIX}/content-sync/{{site}}/{{environment}}",
    capabilities=CAN_READ_CONTENT,
    summary="Read a project, or what has changed of it since it was read",
    description="Keep `treeSha` with what was sent, and send it with the next request: the response then has only what "
    "differs, and `deleted` what is gone. It comes in parts: `nextCursor` asks for the next one. What changes "
    "meanwhile comes with the next request. Who may see some models or languages only is sent these; the hash, too, is "
    "of these.",
    parameters=(
        RequestParameter(
            "treeSha",
            "The `treeSha` that the caller has. With one that is not known (any more), the response is `full`.",
            {"type": "string"},
        ),
        RequestParameter("cursor", "`nextCursor` of the part before.", {"type": "string", "maxLength": 1000}),
    ),
    responses=(SuccessResponse("What the caller does not have.", "ContentSyncResponse"),),
    errors={
        400: "The cursor or a name has another form.",
        404: "There is no such site or environment.",
        410: "It is not known any more what the caller had when the parts began. Begin again.",
        413: "The space has too many documents.",
    },
)
