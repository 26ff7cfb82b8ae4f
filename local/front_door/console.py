"""Serve the console under `/console/`, and sign browsers in to it (decision 0277).

The page of the console sends a session cookie. The front door exchanges it for the token of the local user, and only
for requests that the console's own page sends: a cookie is sent to every port of this machine, also by others' pages.
"""

import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from local.browser_check import decode_headers
from local.console_sign_in import SESSION_SECONDS, ConsoleSecrets
from local.front_door.api_gateway_routing import GatewayResponse
from local.front_door.asgi import App, Receive, Scope, Send
from local.front_door.console_files import INDEX, ConsoleFiles, make_content_security_policy
from local.front_door.request_bodies import BodyTooLargeError, read_limited_body
from local.front_door.responses import send_gateway_response, send_gateway_response_and_drain

CONSOLE_PATH = "/console/"
SESSION_PATH = "/console/session"
CONFIG_PATH = "/console/config.json"
MAX_SIGN_IN_BYTES = 1024
NEW_LINK_TEXT = "`make console` in the project's folder prints a new link."
CODE_REFUSED_TEXT = f"This link was used already, or is older than ten minutes. {NEW_LINK_TEXT}"
SIGNED_OUT_TEXT = f"You are not signed in. {NEW_LINK_TEXT}"
_SECURITY_HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


class Console:
    """An ASGI app around the front door's."""

    def __init__(self, app: App, files: ConsoleFiles, secrets: ConsoleSecrets | None, token: str) -> None:
        """
        Args:
            secrets: Where sessions are kept; None for a front door that signs nobody in.
            token: The token of the person who is signed in.
        """
        self._app = app
        self._files = files
        self._secrets = secrets
        self._token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        path = scope["path"]
        if path == SESSION_PATH:
            await self._handle_session(scope, receive, send)
        elif path in ("/", CONSOLE_PATH.rstrip("/")) and scope["method"] in ("GET", "HEAD"):
            await send_gateway_response(send, GatewayResponse(302, {"location": CONSOLE_PATH}, b""))
        elif path.startswith(CONSOLE_PATH):
            response = self._respond_with_file(scope)
            await send_gateway_response_and_drain(receive, send, response)
        else:
            await self._app(self._sign_request(scope), receive, send)

    def _respond_with_file(self, scope: Scope) -> GatewayResponse:
        if scope["method"] not in ("GET", "HEAD"):
            return _json_response(405, {"error": "Method not allowed"})
        if scope["path"] == CONFIG_PATH:
            return _json_response(200, {"signIn": "link", "missingPackages": self._files.list_missing_packages()})
        file = self._files.read(scope["path"].removeprefix(CONSOLE_PATH))
        if file is None:
            return _json_response(404, {"error": "Not found"})
        headers = {"content-type": file.content_type, "cache-control": "no-cache", "etag": file.etag}
        if file.content_type.startswith("text/html"):
            headers["content-security-policy"] = self._get_policy()
        if decode_headers(scope["headers"]).get("if-none-match") == file.etag:
            return GatewayResponse(304, headers | _SECURITY_HEADERS, b"")
        content = b"" if scope["method"] == "HEAD" else file.content
        return GatewayResponse(200, headers | _SECURITY_HEADERS, content)

    def _get_policy(self) -> str:
        page = self._files.read(INDEX)
        return make_content_security_policy(page.content.decode() if page else "")

    async def _handle_session(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = decode_headers(scope["headers"])
        try:
            body = await read_limited_body(scope, receive, MAX_SIGN_IN_BYTES)
        except BodyTooLargeError:
            body = b""
        if body is None:
            return
        if not _is_of_own_page(headers):
            response = _json_response(403, {"error": "Only the console's own page signs in and out."})
        elif scope["method"] == "GET":
            response = self._describe_session(headers)
        elif scope["method"] == "POST":
            response = self._sign_in(headers, body)
        elif scope["method"] == "DELETE":
            response = self._sign_out(headers)
        else:
            response = _json_response(405, {"error": "Method not allowed"})
        await send_gateway_response(send, response)

    def _describe_session(self, headers: Mapping[str, str]) -> GatewayResponse:
        is_signed_in = self._has_session(headers)
        text = {} if is_signed_in else {"reason": "signedOut", "error": SIGNED_OUT_TEXT}
        return _json_response(200, {"signedIn": is_signed_in} | text)

    def _sign_in(self, headers: Mapping[str, str], body: bytes) -> GatewayResponse:
        session = self._secrets.open_session(_read_code(body)) if self._secrets else None
        if session is None:
            if self._has_session(headers):  # the link was opened again in the browser that has used it
                return self._describe_session(headers)
            return _json_response(403, {"reason": "codeRefused", "error": CODE_REFUSED_TEXT})
        return _json_response(200, {"signedIn": True}, _make_cookie(headers, session, SESSION_SECONDS))

    def _sign_out(self, headers: Mapping[str, str]) -> GatewayResponse:
        if self._secrets:
            self._secrets.close_session(_read_session(headers))
        return _json_response(200, {"signedIn": False}, _make_cookie(headers, "", 0))

    def _sign_request(self, scope: Scope) -> Scope:
        """Put the user's token into a request of the console's page. The cookie itself goes no further."""
        headers = decode_headers(scope["headers"])
        if not _read_session(headers):
            return scope
        kept = [(name, value) for name, value in scope["headers"] if name.lower() != b"cookie"]
        kept.extend(_list_other_cookies(headers))
        is_of_script = headers.get("sec-fetch-dest") == "empty"  # not of a picture or form in a page that is edited
        is_own = is_of_script and _is_of_own_page(headers)
        if "authorization" not in headers and is_own and self._has_session(headers):
            kept.append((b"authorization", f"Bearer {self._token}".encode()))
        return {**scope, "headers": kept}

    def _has_session(self, headers: Mapping[str, str]) -> bool:
        session = _read_session(headers)
        return bool(self._secrets and session and self._secrets.has_session(session))


def _is_of_own_page(headers: Mapping[str, str]) -> bool:
    """Return whether a page of the front door sent the request. Every browser of today says so."""
    origin = headers.get("origin")
    is_own_origin = origin is None or origin.lower() == f"http://{headers.get('host', '').lower()}"
    return is_own_origin and headers.get("sec-fetch-site") == "same-origin"


def _read_code(body: bytes) -> str:
    try:
        code = json.loads(body).get("code")
    except (ValueError, AttributeError):
        return ""
    return code if isinstance(code, str) and code.isascii() else ""


def _cookie_name(headers: Mapping[str, str]) -> str:
    """Name the cookie by the port, because browsers keep one set of cookies for all ports."""
    return f"fermata_console_{headers.get('host', '').rpartition(':')[2]}"


def _list_cookies(headers: Mapping[str, str]) -> list[tuple[str, str]]:
    parts = (part.strip().partition("=") for part in headers.get("cookie", "").split(";"))
    return [(name, value) for name, _, value in parts if name]


def _read_session(headers: Mapping[str, str]) -> str:
    return dict(_list_cookies(headers)).get(_cookie_name(headers), "")


def _list_other_cookies(headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    own_name = _cookie_name(headers)
    cookies = [f"{name}={value}" for name, value in _list_cookies(headers) if name != own_name]
    return [(b"cookie", "; ".join(cookies).encode("latin-1"))] if cookies else []


def _make_cookie(headers: Mapping[str, str], session: str, seconds: int) -> dict[str, str]:
    name = _cookie_name(headers)
    return {"set-cookie": f"{name}={session}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict"}


def _json_response(status: int, body: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> GatewayResponse:
    own_headers = {"content-type": "application/json", "cache-control": "no-store", **_SECURITY_HEADERS}
    return GatewayResponse(HTTPStatus(status).value, own_headers | dict(headers or {}), json.dumps(body).encode())
