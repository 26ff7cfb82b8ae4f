"""Serve the demo host. Requests need a token for the host, signed with its secret.

/demo/acts is for tests, which sign their requests with the key of this run. Browsers are answered nothing.
"""

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

import jwt

from local.browser_check import find_page_problem
from local.demo_host.demo_content import DemoContent, HostRequestError, Json
from local.request_signature import HttpRequest, SignatureRefusedError, get_run_credentials, verify_run_request

INSTALL_CAPABILITY = "plugins.install"


class DemoHostServer(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, content: DemoContent, tenant: str, secret: str, port: int = 0) -> None:
        self.content = content
        self.tenant = tenant
        self.secret = secret
        super().__init__(("127.0.0.1", port), _Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def verify_token(self, authorization: str) -> Json:
        """Verify a token and return its claims.

        Raises:
            HostRequestError: when it is not signed with our secret, has expired, or is for another tenant.
        """
        try:
            claims: Json = jwt.decode(
                authorization.removeprefix("Bearer "),
                self.secret,
                algorithms=["HS256"],
                audience="host",
                leeway=30,
                options={"require": ["exp", "iat", "sub", "tenant"]},
            )
        except jwt.PyJWTError as error:
            raise HostRequestError(401, str(error)) from error
        if claims["tenant"] != self.tenant:
            raise HostRequestError(401, "The token is for another tenant.")
        return claims

    def dispatch_request(
        self, method: str, path: str, query: dict[str, str], authorization: str, idempotency_key: str
    ) -> Json:
        caller, content = self.verify_token(authorization), self.content
        match [method, *(unquote(part) for part in path.strip("/").split("/"))]:
            case ["GET", "tables"]:
                return content.list_tables()
            case ["GET", "documents"]:
                return content.list_documents(query)
            case ["GET", "documents", name]:
                return content.get_document(name)
            case ["GET", "users"]:
                return content.list_users()
            case ["GET", "media"]:
                return content.list_media(query)
            case ["GET", "plugins"]:
                return content.list_plugins()
            case ["POST", "plugins", name, "validate"]:
                return content.validate_plugin(name)
            case ["POST", "plugins", name, "activate"]:
                if INSTALL_CAPABILITY not in caller.get("capabilities", []):
                    raise HostRequestError(403, f"This takes the capability {INSTALL_CAPABILITY}.")
                return content.activate_plugin(name, idempotency_key)
        raise HostRequestError(404, "Not found")


class _Handler(BaseHTTPRequestHandler):
    server: DemoHostServer
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        try:
            self._send_json(200, self._answer_request(urlsplit(self.path)))
        except HostRequestError as refused:
            self._send_json(refused.status, {"error": str(refused)})

    do_POST = do_GET

    def _answer_request(self, parts: SplitResult) -> Json:
        headers = {name.lower(): value for name, value in self.headers.items()}
        if problem := find_page_problem(headers, self.server.server_port):
            self.close_connection = True  # its body is not read
            raise HostRequestError(403, problem)
        self.rfile.read(int(headers.get("content-length") or 0))
        if parts.path == "/demo/acts":
            self._verify_run_signature(parts, headers)
            return {"acts": self.server.content.activations}
        authorization, key = headers.get("authorization", ""), headers.get("idempotency-key", "")
        return self.server.dispatch_request(self.command, parts.path, dict(parse_qsl(parts.query)), authorization, key)

    def _verify_run_signature(self, parts: SplitResult, headers: dict[str, str]) -> None:
        try:
            verify_run_request(HttpRequest(self.command, parts.path, parts.query, headers), get_run_credentials())
        except SignatureRefusedError as refusal:
            raise HostRequestError(403, str(refusal)) from refusal

    def _send_json(self, status: int, answer: Json) -> None:
        body = json.dumps(answer, ensure_ascii=False).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass
