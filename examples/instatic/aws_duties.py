"""Do what only a proxy can do for a stack on AWS (docs/instatic.md). Wherever else Fermata runs, neither is needed.

Both ask the proxy that they are put around, so that it signs their requests as those of the browser.
"""

import json
from functools import partial

import httpx
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

AI_PATH = "/admin/api/ai/"
NOTE = (
    "The pictures of this result and the page together are too large, so they were left out. The call was carried out."
)


def _open_client(app: ASGIApp, scope: Scope) -> httpx.AsyncClient:
    """Return a client of the proxy with what the browser has sent about itself."""
    sent = Headers(scope=scope)
    headers = {name: sent[name] for name in ("cookie", "origin", "content-type") if name in sent}
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://proxy", headers=headers)


class CancelUnreadTurns:
    """Cancel a turn whose browser has closed its stream: that is how its users stop one."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        bridge, is_complete = None, False

        async def send_and_watch(message: Message) -> None:
            nonlocal bridge, is_complete
            if message["type"] == "http.response.start":
                bridge = Headers(raw=message["headers"]).get("fermata-bridge")
            await send(message)
            is_complete = message["type"] == "http.response.body" and not message.get("more_body")

        await self.app(scope, receive, send_and_watch)
        if bridge and not is_complete:
            async with _open_client(self.app, scope) as proxy:
                await proxy.post(f"{AI_PATH}bridges/{bridge}/cancel")


class ShortenLargeResults:
    """Send a tool result that API Gateway refuses again, without pictures and page, so that the turn goes on."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] != AI_PATH + "tool-result":
            await self.app(scope, receive, send)
            return
        body = await Request(scope, receive).body()
        async with _open_client(self.app, scope) as proxy:
            post = partial(proxy.request, scope["method"], scope["path"])
            answer = await post(content=body)
            if answer.status_code == 413:
                answer = await post(content=shorten_result(body))
        await Response(answer.content, answer.status_code, answer.headers)(scope, receive, send)


def shorten_result(body: bytes) -> bytes:
    """Leave out what is too large, and say so. `ok` stays as it was, because the editor has made the change."""
    posted = json.loads(body)
    result = {name: value for name, value in posted["result"].items() if name != "images"}
    if result["ok"]:
        result["data"] = {"result": result.get("data"), "note": NOTE}
    if len(json.dumps(result)) > 4_000_000:
        result = {"ok": False, "error": "The call was carried out, but its result is too large. Read a smaller part."}
    return json.dumps({"bridgeId": posted["bridgeId"], "requestId": posted["requestId"], "result": result}).encode()
