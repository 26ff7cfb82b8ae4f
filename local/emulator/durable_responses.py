"""Answer a request only when its changes outlive the process (decision 0160).

Changes of items and executions are in the journal, and S3 keeps objects as files. All other changes (tables, keys,
functions, stacks) are rare; their responses wait for a snapshot.
"""

from typing import Any

from local.emulator.aws_requests import AwsRequest
from local.emulator.journal import change_journal
from local.emulator.snapshots import App, SnapshotWriter
from local.emulator.stack_change_status import is_ended_change_unsaved

OPERATIONS_WITHOUT_SNAPSHOT = {
    "dynamodb": ("PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem", "TransactWriteItems"),
    "states": ("StartExecution", "StartSyncExecution", "StopExecution", "SendTask"),
    "kms": ("Encrypt", "Decrypt", "ReEncrypt", "Generate", "Sign", "Verify", "DeriveSharedSecret"),
    "cloudformation": ("CreateStack", "UpdateStack", "DeleteStack", "ExecuteChangeSet", "Validate"),
    "logs": ("PutLogEvents", "CreateLogStream", "StartQuery", "FilterLogEvents"),
    "monitoring": ("PutMetricData",),
    "events": ("PutEvents", "TestEventPattern"),
    "sts": ("",),
}
"""How operations begin that change nothing, or only what the journal, S3's files or the next snapshot hold.

Changes of stacks go on behind their response, and are saved before a response shows that they have ended.
"""
OBJECT_SUBRESOURCES = ("tagging", "acl", "retention", "legal-hold", "restore")


class DurableResponses:
    """An ASGI app around MiniStack's."""

    def __init__(self, app: App, snapshots: SnapshotWriter) -> None:
        self._app = app
        self._snapshots = snapshots

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = AwsRequest.from_scope(scope)

        async def receive_body() -> Any:
            message = await receive()
            request.note_body(message.get("body", b""))
            return message

        async def send_when_durable(message: Any) -> None:
            if message["type"] == "http.response.start":
                await self._make_durable(request, message["status"])
            await send(message)

        await self._app(scope, receive_body, send_when_durable)

    async def _make_durable(self, request: AwsRequest, status: int) -> None:
        change_journal.flush()
        if change_journal.is_full:
            self._snapshots.request_save()
        if not request.is_read:
            self._snapshots.note_change()
        is_stack_ended = request.service == "cloudformation" and is_ended_change_unsaved()
        if status < 400 and (needs_snapshot(request) or is_stack_ended):
            await self._snapshots.save()


def needs_snapshot(request: AwsRequest) -> bool:
    """Return whether a request of this kind may change what is neither in the journal nor in files of S3."""
    if request.is_read or not request.service:
        return False
    if request.service == "s3":
        return not _is_object_request(request)
    if request.service == "lambda" and request.path.endswith("/invocations"):
        return False
    return not request.operation.startswith(OPERATIONS_WITHOUT_SNAPSHOT.get(request.service, ()))


def _is_object_request(request: AwsRequest) -> bool:
    """Return whether a request to S3 changes objects only, which are files on the disk."""
    parameters = [parameter.partition("=")[0] for parameter in request.query.split("&")]
    if "delete" in parameters:
        return True
    _, _, key = request.path.lstrip("/").partition("/")
    return bool(key) and not set(parameters) & set(OBJECT_SUBRESOURCES)
