"""Whoever sends a request says where it may go, and connects to the addresses that were checked (decision 0041)."""

import ast
from pathlib import Path
from typing import Any

import anyio
import httpcore2
import httpx2
import pytest

from fermata.drivers.transport import url_guard
from fermata.mcp_sources.guarded_http_client import open_guarded_http_client

ROOT = Path(__file__).parents[2]
CLIENTS = {"Client", "AsyncClient", "HTTPTransport", "AsyncHTTPTransport", "stream", "get", "post", "request"}
OPENS_CONNECTIONS_ITSELF = {
    "layers/fermata/fermata/drivers/transport/http_connection.py": "it passes the guard on to its sockets",
    "layers/fermata/fermata/mcp_sources/guarded_http_client.py": "its transport asks the guard",
    "layers/fermata/fermata/pricing/catalogue_refresh.py": "the operator's own addresses, which no tenant names",
}
"""Modules that call an HTTP library themselves, and why they may."""


def list_calls() -> list[tuple[str, ast.Call]]:
    """Return all calls of the product, each with its file."""
    files = [file for folder in ("layers/fermata/fermata", "functions") for file in (ROOT / folder).rglob("*.py")]
    calls: list[tuple[str, ast.Call]] = []
    for file in files:
        text = file.read_text()
        if "httpx" in text or "HttpConnection" in text:
            place = str(file.relative_to(ROOT))
            calls += [(place, node) for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
    return calls


def test_every_connection_has_a_guard() -> None:
    made = [
        (place, {keyword.arg for keyword in call.keywords})
        for place, call in list_calls()
        if isinstance(call.func, ast.Name) and call.func.id == "HttpConnection"
    ]
    assert len(made) > 10, "connections are found"
    assert [place for place, arguments in made if "guard" not in arguments] == []


def test_nobody_else_calls_an_http_library() -> None:
    found = {
        place
        for place, call in list_calls()
        if isinstance(call.func, ast.Attribute)
        and isinstance(call.func.value, ast.Name)
        and call.func.value.id in ("httpx", "httpx2")
        and call.func.attr in CLIENTS
    }
    assert found == set(OPENS_CONNECTIONS_ITSELF)


def test_an_mcp_server_whose_name_changes_its_address_is_reached_where_it_was_checked_or_not_at_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answers = [("8.8.8.8",), ("127.0.0.1",)]
    connected: list[str] = []

    async def refuse(_backend: object, host: str, *_: Any) -> None:
        connected.append(host)
        raise httpcore2.ConnectError("nothing listens")

    monkeypatch.setattr(url_guard, "_resolve", lambda _host, _port: answers.pop(0))
    monkeypatch.setattr(httpcore2.AnyIOBackend, "connect_tcp", refuse)

    async def ask_twice() -> None:
        async with open_guarded_http_client({}, seconds=5, is_local=False) as client:
            with pytest.raises(httpx2.ConnectError, match="nothing listens"):
                await client.get("https://tools.example/mcp")
            with pytest.raises(Exception, match="not public"):
                await client.get("https://tools.example/mcp")

    anyio.run(ask_twice)
    assert (connected, answers) == (["8.8.8.8"], [])
