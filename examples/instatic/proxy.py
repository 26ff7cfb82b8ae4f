"""Put an Instatic CMS and Fermata behind one address: /admin/api/ai/ goes to Fermata, everything else to the CMS.

    CMS_URL=http://127.0.0.1:3000 FERMATA_URL=https://… FERMATA_ISSUER=https://cms.example.com FERMATA_SECRET=… \
        uvicorn --factory proxy:make_proxy_from_environment --port 8080

It needs httpx, PyJWT, starlette and uvicorn. The user of a request is whoever the CMS says its session belongs to.
"""

import json
import os
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
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
NOT_FORWARDED = ("host", "connection", "transfer-encoding", "content-length", "accept-encoding")
NOTE = (
    "The pictures of this result and the page together are too large, so they were left out. The call was carried out."
)


def make_proxy(cms_url: str, fermata_url: str, issuer: str, secret: str) -> Starlette:
    """Make the proxy; `issuer` and `secret` are those of the tenant (`fermata tenant add`)."""
    http = httpx.AsyncClient(timeout=60, trust_env=False)  # Fermata is never silent for more than 15 seconds

    async def handle(request: Request) -> Response:
        base_url, path = cms_url, request.url.path
        sign: Callable[[], str] = str  # for the CMS nothing is signed
        headers = {name: value for name, value in request.headers.items() if name not in NOT_FORWARDED}
        if path.startswith(AI_PATH):
            session = await http.get(cms_url + WHO_AM_I_PATH, headers={"cookie": headers.get("cookie", "")})
            if session.status_code != 200:
                return JSONResponse({"error": "Unauthorized"}, 401)
            base_url, sign = fermata_url, partial(sign_token, session.json(), issuer, secret)
            # In this cookie, and not in a header, because Fermata then compares the browser's Origin with the tenant's.
            headers |= {"cookie": f"fermata_session={sign()}", "fermata-disconnects": "cancel"}
        body, url = await request.body(), f"{base_url}{path}?{request.url.query}"
        build = partial(http.build_request, request.method, url, headers=headers)
        answer = await http.send(build(content=body), stream=True)
        if answer.status_code == 413 and path == AI_PATH + "tool-result":
            await answer.aclose()
            answer = await http.send(build(content=shorten_result(body)), stream=True)
        forwarding = Forwarding(answer)
        after = BackgroundTask(forwarding.finish, http, base_url, sign)
        response = StreamingResponse(forwarding.pass_on(), answer.status_code, background=after)
        kept = [(name, value) for name, value in answer.headers.multi_items() if name not in NOT_FORWARDED]
        response.raw_headers = [(name.encode(), value.encode()) for name, value in kept]
        return response

    @asynccontextmanager
    async def close_connections(_app: Starlette) -> AsyncIterator[None]:
        async with http:
            yield

    methods = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
    return Starlette(routes=[Route("/{path:path}", handle, methods=methods)], lifespan=close_connections)


@dataclass
class Forwarding:
    """One answer on its way to the browser."""

    answer: httpx.Response
    is_complete: bool = False

    async def pass_on(self) -> AsyncIterator[bytes]:
        async for chunk in self.answer.aiter_raw():  # as they arrive
            yield chunk
        self.is_complete = True

    async def finish(self, http: httpx.AsyncClient, base_url: str, sign_new_token: Callable[[], str]) -> None:
        """Cancel the turn whose prompt this answers, if the browser has left: that is how its users stop a turn."""
        await self.answer.aclose()
        bridge = self.answer.headers.get("fermata-bridge")
        if bridge and not self.is_complete:
            headers = {"authorization": f"Bearer {sign_new_token()}"}
            await http.post(f"{base_url}{AI_PATH}bridges/{bridge}/cancel", headers=headers)


def shorten_result(body: bytes) -> bytes:
    """Leave pictures and page out of a tool result that is larger than API Gateway takes, so that the turn goes on."""
    posted = json.loads(body)
    result = {name: value for name, value in posted["result"].items() if name != "images"}
    if result["ok"]:
        result["data"] = {"result": result.get("data"), "note": NOTE}
    if len(json.dumps(result)) > 4_000_000:
        result = {"ok": False, "error": "The call was carried out, but its result is too large. Read a smaller part."}
    return json.dumps({"bridgeId": posted["bridgeId"], "requestId": posted["requestId"], "result": result}).encode()


def sign_token(user: dict[str, Any], issuer: str, secret: str) -> str:
    """Sign a token of five minutes for a user of the CMS. The audit shows `name`."""
    now = int(time.time())
    claims = {"iss": issuer, "aud": "fermata", "iat": now, "exp": now + 300, "sub": str(user["id"])}
    return jwt.encode(claims | {"name": user["displayName"], "capabilities": user["capabilities"]}, secret, "HS256")


def make_proxy_from_environment() -> Starlette:
    cms_url, fermata_url = (os.environ[name].rstrip("/") for name in ("CMS_URL", "FERMATA_URL"))
    return make_proxy(cms_url, fermata_url, os.environ["FERMATA_ISSUER"], os.environ["FERMATA_SECRET"])
