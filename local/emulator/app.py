"""MiniStack's application with every correction in place."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from ministack import app as ministack
from ministack.core import persistence

from local.emulator import snapshots
from local.emulator.access import restrict_access
from local.emulator.patches import (
    api_gateway_methods,
    callback_tasks,
    dynamodb_expressions,
    dynamodb_streams,
    executions,
    lambda_functions,
    log_streams,
    registry,
    schedules,
    task_tokens,
)
from local.emulator.request_recorder import RequestRecorder
from local.emulator.snapshots import App

PATCHES = (
    executions,
    dynamodb_expressions,
    lambda_functions,
    api_gateway_methods,
    log_streams,
    schedules,
    snapshots,
    dynamodb_streams,
    callback_tasks,
    task_tokens,
)
PROCESSES, SNAPSHOT = "/_fermata/processes", "/_fermata/snapshot"
PageHandler = Callable[[], Awaitable[Any]]


@contextlib.asynccontextmanager
async def open_app() -> AsyncIterator[App]:
    """The application with its own pages and, when state is kept, the snapshots beside it."""
    registry.apply_patches()
    watched = snapshots.SnapshotWriter(ministack.app)
    pages: dict[str, PageHandler] = {PROCESSES: _processes, SNAPSHOT: watched.save}
    keeper = asyncio.create_task(watched.save_periodically()) if persistence.PERSIST_STATE else None
    yield restrict_access(add_pages(RequestRecorder(watched), pages))
    if keeper is not None:
        keeper.cancel()


def add_pages(app: App, pages: dict[str, PageHandler]) -> App:
    """Adds what only the tests and tools of this project ask for."""

    async def route(scope: Any, receive: Any, send: Any) -> None:
        page = pages.get(scope["path"]) if scope["type"] == "http" else None
        if page is None:
            await app(scope, receive, send)
            return
        body = json.dumps(await page()).encode()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"application/json")]})
        await send({"type": "http.response.body", "body": body})

    return route


async def _processes() -> dict[str, list[dict[str, Any]]]:
    """The processes that run functions. In a thread, because a function that is being imported may call us."""
    return await asyncio.to_thread(lambda_functions.list_processes)
