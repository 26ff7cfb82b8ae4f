"""Put an Instatic CMS and Fermata behind one address: /admin/api/ai/ goes to Fermata, everything else to the CMS.

    CMS_URL=http://127.0.0.1:3000 FERMATA_URL=https://… FERMATA_ISSUER=https://cms.example.com FERMATA_SECRET=… \
        uvicorn --app-dir examples --factory instatic.proxy:make_proxy_from_environment --port 8080

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
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from .aws_duties import CancelUnreadTurns, ShortenLargeResults

AI_PATH, WHO_AM_I_PATH = "/admin/api/ai/", "/admin/api/me"
"""The second is where the CMS answers {id, displayName, capabilities} for its session. Change it to what yours has."""
METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
AWS_DUTIES = [Middleware(CancelUnreadTurns), Middleware(ShortenLargeResults)]
NOT_FORWARDED = (b"host", b"connection", b"transfer-encoding", b"content-length", b"accept-encoding")


def make_proxy(cms_url: str, fermata_url: str, issuer: str, secret: str) -> Starlette:
    """Make the proxy; `issuer` and `secret` are those of the tenant (`fermata tenant add`)."""
    http = httpx.AsyncClient(timeout=60, trust_env=False)  # Fermata is never silent for more than 15 seconds

    async def answer(request: Request) -> Response:
        if not request.url.path.startswith(AI_PATH):
            return await forward(http, request, cms_url)
        me = await http.get(cms_url + WHO_AM_I_PATH, headers={"cookie": request.headers.get("cookie", "")})
        if me.status_code != 200:
            return JSONResponse({"error": "Unauthorized"}, 401)
        # In a cookie, and not as a bearer token: Fermata then compares the browser's Origin with those of the tenant.
        token = {"cookie": f"fermata_session={sign_token(me.json(), issuer, secret)}"}
        return await forward(http, request, fermata_url, **token, **{"fermata-disconnects": "cancel"})

    @asynccontextmanager
    async def close_connections(_app: Starlette) -> AsyncIterator[None]:
        async with http:
            yield

    routes = [Route("/{path:path}", answer, methods=METHODS)]
    return Starlette(routes=routes, middleware=AWS_DUTIES, lifespan=close_connections)


async def forward(http: httpx.AsyncClient, request: Request, base_url: str, **other_headers: str) -> Response:
    """Forward a request, and its answer as it arrives."""
    headers = httpx.Headers([pair for pair in request.headers.raw if pair[0] not in NOT_FORWARDED])
    headers.update(other_headers)
    url = f"{base_url}{request.scope['raw_path'].decode()}?{request.url.query}"  # as it was encoded
    sent = http.build_request(request.method, url, headers=headers, content=await request.body())
    answer = await http.send(sent, stream=True)
    response = StreamingResponse(answer.aiter_raw(), answer.status_code, background=BackgroundTask(answer.aclose))
    response.raw_headers = [pair for pair in answer.headers.raw if pair[0].lower() not in NOT_FORWARDED]
    return response


def sign_token(user: dict[str, Any], issuer: str, secret: str) -> str:
    """Sign a token of five minutes for a user of the CMS. The audit shows `name`."""
    now = int(time.time())
    claims = {"iss": issuer, "aud": "fermata", "iat": now, "exp": now + 300, "sub": str(user["id"])}
    return jwt.encode(claims | {"name": user["displayName"], "capabilities": user["capabilities"]}, secret, "HS256")


def make_proxy_from_environment() -> Starlette:
    cms_url, fermata_url = (os.environ[name].rstrip("/") for name in ("CMS_URL", "FERMATA_URL"))
    return make_proxy(cms_url, fermata_url, os.environ["FERMATA_ISSUER"], os.environ["FERMATA_SECRET"])
