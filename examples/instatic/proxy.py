"""Put an Instatic CMS and Fermata behind one address: /admin/api/ai/ goes to Fermata, everything else to the CMS.

    CMS_URL=http://127.0.0.1:3000 FERMATA_URL=https://… FERMATA_ISSUER=https://cms.example.com FERMATA_SECRET=… \
        uvicorn --factory proxy:make_proxy_from_environment --port 8080

It needs httpx, PyJWT, starlette and uvicorn. The user of a request is whoever the CMS says its session belongs to.
"""

import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import jwt
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

AI_PATH = "/admin/api/ai/"
WHO_AM_I_PATH = "/admin/api/me"
"""Where the CMS answers {id, displayName, capabilities} for its session cookie. Change it to what yours has."""
NOT_FORWARDED = ("host", "cookie", "connection", "transfer-encoding", "content-length", "accept-encoding")


def make_proxy(cms_url: str, fermata_url: str, issuer: str, secret: str) -> Starlette:
    """Make the proxy; `issuer` and `secret` are those of the tenant (`fermata tenant add`)."""
    http = httpx.AsyncClient(timeout=httpx.Timeout(30, read=60), trust_env=False)  # Fermata is never silent for long

    async def forward(request: Request, base_url: str, cookie: str) -> Response:
        headers = [(name, value) for name, value in request.headers.items() if name not in NOT_FORWARDED]
        url = httpx.URL(base_url.rstrip("/") + request.url.path, query=request.url.query.encode())
        body = await request.body()
        outgoing = http.build_request(request.method, url, headers=[*headers, ("cookie", cookie)], content=body)
        answer = await http.send(outgoing, stream=True)
        kept = [(name, value) for name, value in answer.headers.multi_items() if name not in NOT_FORWARDED]
        response = StreamingResponse(answer.aiter_raw(), answer.status_code, background=BackgroundTask(answer.aclose))
        response.raw_headers = [(name.encode(), value.encode()) for name, value in kept]
        return response  # each chunk is passed on as it arrives

    async def handle(request: Request) -> Response:
        cookie = request.headers.get("cookie", "")
        if not request.url.path.startswith(AI_PATH):
            return await forward(request, cms_url, cookie)
        session = await http.get(cms_url.rstrip("/") + WHO_AM_I_PATH, headers={"cookie": cookie})
        if session.status_code != 200:
            return JSONResponse({"error": "Unauthorized"}, 401)
        # In this cookie, and not in a header, because Fermata then compares the browser's Origin with the tenant's.
        token = sign_token(session.json(), issuer, secret)
        return await forward(request, fermata_url, f"fermata_session={token}")

    @asynccontextmanager
    async def close_connections(_app: Starlette) -> AsyncIterator[None]:
        async with http:
            yield

    methods = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
    return Starlette(routes=[Route("/{path:path}", handle, methods=methods)], lifespan=close_connections)


def sign_token(user: dict[str, Any], issuer: str, secret: str) -> str:
    """Sign a token of five minutes for a user of the CMS. The audit shows `name`."""
    now = int(time.time())
    claims = {"iss": issuer, "aud": "fermata", "iat": now, "exp": now + 300, "sub": str(user["id"])}
    return jwt.encode(claims | {"name": user["displayName"], "capabilities": user["capabilities"]}, secret, "HS256")


def make_proxy_from_environment() -> Starlette:
    names = ("CMS_URL", "FERMATA_URL", "FERMATA_ISSUER", "FERMATA_SECRET")
    return make_proxy(*(os.environ[name] for name in names))
