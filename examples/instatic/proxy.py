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

AI_PATH = "/admin/api/ai/"
WHO_AM_I_PATH = "/admin/api/me"
"""Where the CMS answers {id, displayName, capabilities} for its session cookie. Change it to what yours has."""
METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
NOT_FORWARDED = (b"host", b"connection", b"transfer-encoding", b"content-length", b"accept-encoding")


def make_proxy(cms_url: str, fermata_url: str, issuer: str, secret: str) -> Starlette:
    """Make the proxy; `issuer` and `secret` are those of the tenant (`fermata tenant add`)."""
    http = httpx.AsyncClient(timeout=60, trust_env=False)  # Fermata is never silent for more than 15 seconds

    async def forward(request: Request) -> Response:
        base_url = cms_url
        headers = httpx.Headers([pair for pair in request.headers.raw if pair[0] not in NOT_FORWARDED])
        if request.url.path.startswith(AI_PATH):
            session = await http.get(cms_url + WHO_AM_I_PATH, headers={"cookie": headers.get("cookie", "")})
            if session.status_code != 200:
                return JSONResponse({"error": "Unauthorized"}, 401)
            # In this cookie, and not in a header, because Fermata then compares the browser's Origin with the tenant's.
            headers["cookie"] = f"fermata_session={sign_token(session.json(), issuer, secret)}"
            base_url, headers["fermata-disconnects"] = fermata_url, "cancel"
        url = f"{base_url}{request.url.path}?{request.url.query}"
        forwarded = http.build_request(request.method, url, headers=headers, content=await request.body())
        answer = await http.send(forwarded, stream=True)
        chunks = answer.aiter_raw()  # as they arrive
        response = StreamingResponse(chunks, answer.status_code, background=BackgroundTask(answer.aclose))
        response.raw_headers = [pair for pair in answer.headers.raw if pair[0].lower() not in NOT_FORWARDED]
        return response

    @asynccontextmanager
    async def close_connections(_app: Starlette) -> AsyncIterator[None]:
        async with http:
            yield

    aws_duties = [Middleware(CancelUnreadTurns), Middleware(ShortenLargeResults)]
    return Starlette(
        routes=[Route("/{path:path}", forward, methods=METHODS)], middleware=aws_duties, lifespan=close_connections
    )


def sign_token(user: dict[str, Any], issuer: str, secret: str) -> str:
    """Sign a token of five minutes for a user of the CMS. The audit shows `name`."""
    now = int(time.time())
    claims = {"iss": issuer, "aud": "fermata", "iat": now, "exp": now + 300, "sub": str(user["id"])}
    return jwt.encode(claims | {"name": user["displayName"], "capabilities": user["capabilities"]}, secret, "HS256")


def make_proxy_from_environment() -> Starlette:
    cms_url, fermata_url = (os.environ[name].rstrip("/") for name in ("CMS_URL", "FERMATA_URL"))
    return make_proxy(cms_url, fermata_url, os.environ["FERMATA_ISSUER"], os.environ["FERMATA_SECRET"])
