"""Make the emulator's ASGI app: patched MiniStack, its check of signatures, and pages for tests and tools."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

from ministack import app as ministack
from ministack.core import persistence

from local.emulator import snapshots
from local.emulator.append_feed import AppendFeed
from local.emulator.copy_page import CopyPage
from local.emulator.durable_responses import DurableResponses
from local.emulator.patches import (
    api_gateway_any_method,
    callback_tasks,
    dynamodb_expression_cache,
    dynamodb_streams,
    dynamodb_writes,
    executions,
    journaled_changes,
    json_requests,
    jsonata_paths,
    lambda_functions,
    newest_log_streams,
    object_writes,
    queue_urls,
    registry,
    sam_transform,
    shortened_minute,
    simulated_latency,
    task_tokens,
)
from local.emulator.request_recorder import RequestRecorder
from local.emulator.signature_check import SignatureCheck
from local.emulator.snapshots import App

PATCHES = (
    executions,
    jsonata_paths,
    dynamodb_expression_cache,
    dynamodb_writes,
    json_requests,
    lambda_functions,
    api_gateway_any_method,
    newest_log_streams,
    sam_transform,
    shortened_minute,
    snapshots,
    dynamodb_streams,
    journaled_changes,
    object_writes,
    queue_urls,
    callback_tasks,
    task_tokens,
    simulated_latency,
)
PROCESSES_PATH = "/_fermata/processes"
SNAPSHOT_PATH = "/_fermata/snapshot"
PageHandler = Callable[[], Awaitable[Any]]


@contextlib.asynccontextmanager
async def open_app() -> AsyncIterator[App]:
    """Patch MiniStack and yield the app. When state is kept, it is saved meanwhile, and once more at the end."""
    registry.apply_patches()
    pages: dict[str, PageHandler] = {PROCESSES_PATH: _list_processes}
    if not persistence.PERSIST_STATE:
        yield make_app(ministack.app, pages)
        return
    writer = snapshots.SnapshotWriter(Path(persistence.STATE_DIR))
    durable_app = DurableResponses(ministack.app, writer)
    saving = asyncio.create_task(writer.save_periodically())
    yield make_app(durable_app, pages | {SNAPSHOT_PATH: writer.save})
    saving.cancel()
    await writer.save_at_stop()


def make_app(app: App, pages: dict[str, PageHandler]) -> App:
    app = CopyPage(AppendFeed(app), lambda_functions.fork_copy)
    return SignatureCheck.from_environment(add_pages(RequestRecorder(app), pages))


def add_pages(app: App, pages: dict[str, PageHandler]) -> App:
    """Serve JSON pages that only the tests and tools of this project request, by path."""

    async def route(scope: Any, receive: Any, send: Any) -> None:
        page = pages.get(scope["path"]) if scope["type"] == "http" else None
        if page is None:
            await app(scope, receive, send)
            return
        body = json.dumps(await page()).encode()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"application/json")]})
        await send({"type": "http.response.body", "body": body})

    return route


async def _list_processes() -> dict[str, list[dict[str, Any]]]:
    """List function processes in a thread, because a function that is being imported may call the emulator."""
    return await asyncio.to_thread(lambda_functions.list_processes)
