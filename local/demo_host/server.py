"""The HTTP side: every request must carry a token for a host, signed with our secret; /demo/acts is for tests."""

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import jwt

from local.demo_host.content import Content, Json, Refused

MAY_INSTALL = "plugins.install"


class DemoHost(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, content: Content, tenant: str, secret: str, port: int = 0) -> None:
        self.content, self.tenant, self.secret = content, tenant, secret
        super().__init__(("127.0.0.1", port), _Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def caller(self, header: str) -> Json:
        """The claims of a token that is ours, young, and for this tenant."""
        try:
            claims: Json = jwt.decode(
                header.removeprefix("Bearer "),
                self.secret,
                algorithms=["HS256"],
                audience="host",
                leeway=30,
                options={"require": ["exp", "iat", "sub", "tenant"]},
            )
        except jwt.PyJWTError as error:
            raise Refused(401, str(error)) from error
        if claims["tenant"] != self.tenant:
            raise Refused(401, "The token is for another tenant.")
        return claims

    def answer(self, method: str, path: str, wanted: dict[str, str], header: str, key: str) -> Json:
        caller, content = self.caller(header), self.content
        match [method, *(unquote(part) for part in path.strip("/").split("/"))]:
            case ["GET", "tables"]:
                return content.tables()
            case ["GET", "documents"]:
                return content.documents(wanted)
            case ["GET", "documents", name]:
                return content.document(name)
            case ["GET", "users"]:
                return content.users()
            case ["GET", "media"]:
                return content.media(wanted)
            case ["GET", "plugins"]:
                return content.plugins()
            case ["POST", "plugins", name, "validate"]:
                return content.validate(name)
            case ["POST", "plugins", name, "activate"]:
                if MAY_INSTALL not in caller.get("capabilities", []):
                    raise Refused(403, f"This takes the capability {MAY_INSTALL}.")
                return content.activate(name, key)
        raise Refused(404, "Not found")


class _Handler(BaseHTTPRequestHandler):
    server: DemoHost
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.rfile.read(int(self.headers.get("content-length") or 0))
        parts = urlsplit(self.path)
        if parts.path == "/demo/acts":
            self._say(200, {"acts": self.server.content.acts})
            return
        header, key = self.headers.get("authorization", ""), self.headers.get("idempotency-key", "")
        try:
            wanted = dict(parse_qsl(parts.query))
            self._say(200, self.server.answer(self.command, parts.path, wanted, header, key))
        except Refused as refused:
            self._say(refused.status, {"error": str(refused)})

    do_POST = do_GET

    def _say(self, status: int, said: Json) -> None:
        body = json.dumps(said, ensure_ascii=False).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass
