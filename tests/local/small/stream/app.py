"""Stream two lines, the second one after the file named in the query exists."""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from pathlib import Path

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route


async def answer(request: Request) -> Response:
    gate, body = Path(request.query_params.get("gate", "/dev/null")), await request.body()
    return StreamingResponse(lines(gate, len(body), dict(request.headers)))


async def lines(gate: Path, size: int, headers: dict[str, str]) -> AsyncIterator[bytes]:
    yield json.dumps({"colour": os.environ["COLOUR"], "size": size, "headers": headers}).encode() + b"\n"
    while not gate.exists():
        await asyncio.sleep(0.01)
    yield b"last\n"


app = Starlette(routes=[Route("/stream", answer, methods=["GET", "POST"])])
