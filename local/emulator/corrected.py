"""MiniStack's application with every correction in place."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from ministack import app as ministack
from ministack.core import persistence

from local.emulator import (
    executions,
    expressions,
    functions,
    gateway,
    logs,
    schedules,
    snapshots,
    streams,
    tasks,
    tokens,
    upstream,
)
from local.emulator.manners import with_manners
from local.emulator.recording import Recorder
from local.emulator.snapshots import App

CORRECTIONS = (executions, expressions, functions, gateway, logs, schedules, snapshots, streams, tasks, tokens)
PROCESSES, SNAPSHOT = "/_fermata/processes", "/_fermata/snapshot"
Page = Callable[[], Awaitable[Any]]


@contextlib.asynccontextmanager
async def background() -> AsyncIterator[App]:
    """The application with its own pages and, when state is kept, the snapshots beside it."""
    upstream.apply()
    watched = snapshots.Snapshots(ministack.app)
    pages: dict[str, Page] = {PROCESSES: _processes, SNAPSHOT: watched.save}
    keeper = asyncio.create_task(watched.keep()) if persistence.PERSIST_STATE else None
    yield with_manners(with_pages(Recorder(watched), pages))
    if keeper is not None:
        keeper.cancel()


def with_pages(app: App, pages: dict[str, Page]) -> App:
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
    return await asyncio.to_thread(functions.processes)
