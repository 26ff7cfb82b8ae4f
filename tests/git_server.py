"""Serve Git repositories over HTTP on this machine, with the git program itself, and break on request."""

import base64
import os
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

GIT_ENVIRONMENT = {
    "PATH": os.environ.get("PATH", ""),
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_AUTHOR_NAME": "Bob",
    "GIT_AUTHOR_EMAIL": "bob@example.com",
    "GIT_COMMITTER_NAME": "Bob",
    "GIT_COMMITTER_EMAIL": "bob@example.com",
}


def run_git(*arguments: str, folder: Path, text: bytes | None = None) -> str:
    """Run git in a folder, and return what it prints."""
    command = ["git", "-c", "init.defaultBranch=main", *arguments]
    done = subprocess.run(command, cwd=folder, env=GIT_ENVIRONMENT, input=text, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode().strip()


class GitServer:
    """A server of one bare repository.

    Attributes:
        password: What its user has to know; empty for none.
        location: Where requests are redirected to; empty for nowhere.
        before_push: Called before a push is carried out.
        loses_answers: Whether the connection breaks after a push was carried out.
    """

    def __init__(self, folder: Path) -> None:
        self.repository = folder / "site.git"
        run_git("init", "-q", "--bare", str(self.repository), folder=folder)
        run_git("config", "http.receivepack", "true", folder=self.repository)
        self.clone = folder / "clone"
        self.url, self.password, self.location = "", "", ""
        self.before_push: Callable[[], None] = lambda: None
        self.loses_answers, self.requests = False, 0

    def commit(self, changes: dict[str, str | None], message: str = "By hand") -> str:
        """Commit changes of files as somebody else does, and return the commit."""
        if not self.clone.exists():
            run_git("clone", "-q", str(self.repository), str(self.clone), folder=self.repository)
            if not self.list_branches():
                run_git("checkout", "-q", "-b", "main", folder=self.clone)
        if self.list_branches():
            run_git("fetch", "-q", folder=self.clone)
            run_git("reset", "-q", "--hard", "origin/main", folder=self.clone)
        for path, text in changes.items():
            file = self.clone / path
            if text is None:
                file.unlink()
                continue
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, newline="")
        run_git("add", "-A", folder=self.clone)
        run_git("commit", "-q", "-m", message, folder=self.clone)
        run_git("push", "-q", "origin", "HEAD:main", folder=self.clone)
        return run_git("rev-parse", "HEAD", folder=self.clone)

    def list_branches(self) -> list[str]:
        """Return the names of the branches."""
        return run_git("branch", "--format=%(refname:short)", folder=self.repository).split()

    def read_files(self, branch: str = "main") -> dict[str, str]:
        """Return the files of a branch."""
        names = run_git("ls-tree", "-r", "-z", "--name-only", branch, folder=self.repository).split("\0")
        found = {name: self._show(f"{branch}:{name}") for name in names if name}
        run_git("fsck", "--strict", folder=self.repository)
        return found

    def _show(self, name: str) -> str:
        command = ["git", "show", name]
        return subprocess.run(
            command, cwd=self.repository, env=GIT_ENVIRONMENT, capture_output=True, check=True
        ).stdout.decode()

    def list_commits(self, branch: str = "main") -> list[str]:
        """Return the messages of a branch's commits, the newest first."""
        return run_git("log", "--format=%s", branch, folder=self.repository).splitlines()

    def install_hook(self, script: str) -> None:
        """Let a script decide about each push."""
        hook = self.repository / "hooks" / "pre-receive"
        hook.write_text(f"#!/bin/sh\n{script}\n")
        hook.chmod(0o755)

    def answer(self, handler: BaseHTTPRequestHandler, body: bytes) -> None:
        """Answer a request with the git program, as a web server does."""
        self.requests += 1
        path, _, query = handler.path.partition("?")
        expected = "Basic " + base64.b64encode(f"ada:{self.password}".encode()).decode()
        if self.location:
            return _respond(handler, 301, {"Location": self.location + handler.path}, b"")
        if self.password and handler.headers.get("Authorization") != expected:
            return _respond(handler, 401, {"WWW-Authenticate": 'Basic realm="git"'}, b"")
        is_push = path.endswith("git-receive-pack")
        if is_push:
            self.before_push()
        environment = GIT_ENVIRONMENT | {
            "GIT_PROJECT_ROOT": str(self.repository.parent),
            "GIT_HTTP_EXPORT_ALL": "1",
            "REQUEST_METHOD": handler.command,
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "CONTENT_TYPE": handler.headers.get("Content-Type", ""),
            "CONTENT_LENGTH": str(len(body)),
            "GIT_PROTOCOL": handler.headers.get("Git-Protocol", ""),
            "REMOTE_USER": "ada",
        }
        command = ["git", "http-backend"]
        done = subprocess.run(command, env=environment, input=body, capture_output=True, check=True)
        if is_push and self.loses_answers:
            handler.close_connection = True
            handler.connection.close()
            return None
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        headers = dict(line.decode().split(": ", 1) for line in head.split(b"\r\n"))
        return _respond(handler, int(headers.pop("Status", "200").split()[0]), headers, content)


def _respond(handler: BaseHTTPRequestHandler, status: int, headers: dict[str, str], body: bytes) -> None:
    handler.send_response(status)
    for name, value in headers.items():
        handler.send_header(name, value)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)


@contextmanager
def serve_git(folder: Path, certificate: Path | None = None) -> Iterator[GitServer]:
    """Serve an empty repository until the context ends, over TLS if there is a certificate."""
    server = GitServer(folder)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            server.answer(self, b"")

        def do_POST(self) -> None:
            server.answer(self, self.rfile.read(int(self.headers["Content-Length"])))

        def log_message(self, *_arguments: Any) -> None:
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        # The handshake is made by the thread of a connection, not by the one that accepts them.
        http.socket = context.wrap_socket(http.socket, server_side=True, do_handshake_on_connect=False)
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    server.url = f"{'https' if certificate else 'http'}://127.0.0.1:{http.server_port}/site.git"
    try:
        yield server
    finally:
        http.shutdown()
        thread.join()
        http.server_close()
