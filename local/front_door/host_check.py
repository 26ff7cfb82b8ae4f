"""Answer requests only under the front door's own names (decision 0231).

A page can give its own name the address of this machine. For the browser the front door is then a part of the page's
site, and the page reads what it answers. The `Host` header tells.
"""

import json
import re

from local.browser_check import LOOPBACK_NAMES
from local.front_door.api_gateway_routing import GatewayResponse
from local.front_door.asgi import App, Receive, Scope, Send, find_header
from local.front_door.responses import send_gateway_response_and_drain

MISDIRECTED_STATUS = 421
_HOST = re.compile(r"(\[[0-9a-f:]+\]|[\w.-]+)(?::\d+)?", re.ASCII)


class HostCheck:
    """An ASGI app around the front door's."""

    def __init__(self, app: App, names: frozenset[str]) -> None:
        self._app = app
        self._names = names

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        host = (find_header(scope.get("headers", []), b"host") or b"").decode("latin-1").lower()
        match = _HOST.fullmatch(host)
        if match is not None and match[1] in self._names:
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            await send_gateway_response_and_drain(receive, send, _refusal(host))


def parse_own_names(further_names: str) -> frozenset[str]:
    """Return the names of this machine and those that the person has listed, separated by commas. Ports are ignored."""
    matches = (_HOST.fullmatch(name.strip().lower()) for name in further_names.split(","))
    return frozenset((*LOOPBACK_NAMES, *(match[1] for match in matches if match is not None)))


def _refusal(host: str) -> GatewayResponse:
    name = host.rpartition(":")[0] or host
    text = (
        f"This service runs on this machine and does not answer under the name {name[:200]!r}. Use http://127.0.0.1 or "
        f"http://localhost. If the name is yours: FERMATA_HOSTS=NAME make run"
    )
    body = json.dumps({"error": text}).encode()
    return GatewayResponse(MISDIRECTED_STATUS, {"content-type": "application/json"}, body)
