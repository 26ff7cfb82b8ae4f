"""MiniStack's application with every correction in place."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any

from ministack import app as ministack
from ministack.core import persistence

from local.emulator import executions, expressions, functions, gateway, schedules, snapshots, tasks, tokens, upstream
from local.emulator.snapshots import App

CORRECTIONS = (executions, expressions, functions, gateway, schedules, snapshots, tasks, tokens)
PROCESSES = "/_fermata/processes"


@contextlib.asynccontextmanager
async def background() -> AsyncIterator[App]:
    """The application, with its snapshots running beside it when state is kept."""
    upstream.apply()
    app = with_processes(ministack.app)
    if not persistence.PERSIST_STATE:
        yield app
        return
    watched = snapshots.Snapshots(app)
    keeper = asyncio.create_task(watched.keep())
    yield watched
    keeper.cancel()


def with_processes(app: App) -> App:
    """Adds one page: the processes that run functions."""

    async def route(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http" or scope["path"] != PROCESSES:
            await app(scope, receive, send)
            return
        body = json.dumps(functions.processes()).encode()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"application/json")]})
        await send({"type": "http.response.body", "body": body})

    return route
