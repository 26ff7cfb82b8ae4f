"""Stream the calls of assistants to an open editor (decision 0377)."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Any

from fermata.aws.resources import Resources
from fermata.aws.security_events import log_refusal
from fermata.client_protocols.log_response import handler_pool
from fermata.domain.caller import Caller, Capability
from fermata.domain.errors import Forbidden, InvalidRequest, Unauthorized
from fermata.editor_bridge.editor_call import list_new_calls
from fermata.editor_bridge.open_editors import (
    EDITOR_RENEWAL_SECONDS,
    OpenEditor,
    read_editor,
    register_editor,
    renew_editor,
    unregister_editor,
)
from fermata.limits.reader_leases import ReaderLease
from fermata.wire.auth.authentication import authenticate
from fermata.wire.auth.mcp_connector_store import has_live_connector
from fermata.wire.auth.tenant_store import get_tenant
from fermata.wire.http.editor_generation import detect_editor_generation
from fermata.wire.http.messages import HttpRequest, Response
from fermata.wire.http.routing import RequestContext
from fermata.wire.http.tool_naming import select_tool_names
from fermata.wire.renderers.ndjson import HEARTBEAT_LINE, NDJSON_CONTENT_TYPE

EDITOR_SCOPES = ("site", "content")
BUSY_SECONDS = 10.0
"""For so long after a call, the next one is looked for often."""
_SITE_READ = "site.read"
_STREAM_HEADERS = {
    "Content-Type": NDJSON_CONTENT_TYPE,
    "Cache-Control": "private, no-store",
    "X-Accel-Buffering": "no",
}
REFUSED_WITHOUT_CALLER_HEADERS = {"Cache-Control": "private, max-age=3600"}
REFUSED_FOR_NOW_HEADERS = {"Cache-Control": "private, max-age=300"}
NO_BRIDGE_MESSAGE = "There is no connection for MCP clients here."


def open_editor_bridge(resources: Resources, request: HttpRequest) -> Response:
    """Answer an editor that asks for its bridge: with calls as they come, or with a refusal that its browser keeps."""
    try:
        caller = authenticate(resources, request.headers, request.method)
    except Unauthorized as refusal:
        if refusal.reason != "missing":  # as every browser is that shows the editor to somebody who is not signed in
            log_refusal(refusal)
        return Response(403, {"error": NO_BRIDGE_MESSAGE}, REFUSED_WITHOUT_CALLER_HEADERS)
    scope = request.query.get("scope", "site")
    if scope not in EDITOR_SCOPES:
        raise InvalidRequest(f"Name the 'scope' of the editor: {' or '.join(EDITOR_SCOPES)}.")
    if not _may_open(caller, scope) or not has_live_connector(resources, caller.tenant):
        return Response(403, {"error": NO_BRIDGE_MESSAGE}, REFUSED_FOR_NOW_HEADERS)
    context = RequestContext(resources, request, caller, get_tenant(resources, caller.tenant))
    try:
        return _stream_calls(context, scope)
    except Forbidden as refusal:
        log_refusal(refusal)
        return Response(403, {"error": refusal.message}, REFUSED_FOR_NOW_HEADERS)


def _may_open(caller: Caller, scope: str) -> bool:
    is_permitted = caller.has_capability(Capability.CHAT) or (scope == "site" and caller.has_capability(_SITE_READ))
    return is_permitted and caller.allows_scope(scope)


def _stream_calls(context: RequestContext, scope: str) -> Response:
    resources = context.resources
    tool_names = select_tool_names(context)
    generation = detect_editor_generation(context, tool_names, has_content="scope" in context.request.query)
    lease = ReaderLease.take(resources, context.caller, context.caller_limits)
    with lease.released_on_failure():
        editor = register_editor(resources, context.caller, scope, tool_names, generation)
    is_closed: list[bool] = []

    def close() -> None:
        if not is_closed:
            is_closed.append(True)
            resources.clock.start_thread(partial(unregister_editor, resources, editor), "close-editor")
            resources.clock.start_thread(lease.release, "release-reader")

    return Response(200, stream=_send_calls(resources, editor, close), headers=_STREAM_HEADERS, on_close=close)


async def _send_calls(resources: Resources, editor: OpenEditor, close: Callable[[], None]) -> AsyncIterator[bytes]:
    """Send each call once, and blank lines in between, until the editor's row is gone or the response has to end."""
    monotonic, settings = resources.clock.monotonic, resources.settings
    yield _to_line({"type": "bridgeReady", "bridgeId": editor.id})
    started_at = sent_at = renewed_at = busy_at = monotonic()
    sent = 0
    while monotonic() - started_at < settings.reader_seconds:
        is_busy = monotonic() - busy_at < BUSY_SECONDS
        await asyncio.sleep((settings.poll_ms if is_busy else settings.idle_poll_ms) / 1000)
        known = await _run(read_editor, resources, editor.tenant, editor.user, editor.id)
        if known is None:
            return
        if known.call_count > sent:
            for call in await _run(list_new_calls, resources, known, sent):
                request = {"requestId": call.request_id, "toolName": call.tool_name, "input": call.input}
                yield _to_line({"type": "toolRequest", **request})
                sent = int(call.request_id)
            # A call that was made since the editor's row was read may have been sent, too.
            sent = max(sent, known.call_count)
            sent_at = busy_at = monotonic()
        if monotonic() - renewed_at >= EDITOR_RENEWAL_SECONDS:
            renewed_at = monotonic()
            if not await _run(renew_editor, resources, editor):
                return
        if monotonic() - sent_at >= settings.reader_heartbeat_seconds:
            sent_at = monotonic()
            yield HEARTBEAT_LINE
    close()


async def _run(function: Callable[..., Any], *arguments: Any) -> Any:
    return await asyncio.get_running_loop().run_in_executor(handler_pool, partial(function, *arguments))


def _to_line(event: dict[str, Any]) -> bytes:
    return json.dumps(event, separators=(",", ":")).encode() + b"\n"
