"""`fermata content`: what is asked of the service, what is written to files, exit codes."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from fermata_client.commands.workspace import content
from fermata_client.service.client import FermataClient
from tests.client.commands.run_command import run_command

DOCUMENTS = [{"model": "page", "id": f"p{number}", "title": f"Page {number}"} for number in range(30)]


class ContentService:
    """Serves a space in parts, and keeps what is sent to it."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, str, Any]] = []
        self.page_path = "de/news.html"

    def __call__(self, request: httpx.Request) -> httpx.Response:
        body = json.loads(request.content) if request.content else None
        path = request.url.path.removeprefix("/admin/api/ai")
        self.sent.append((request.method, path, body))
        return httpx.Response(200, json=self._answer(path, dict(request.url.params), body))

    def _answer(self, path: str, query: dict[str, str], body: Any) -> Any:
        if query.get("confirm") == "shop/main":
            return {"job": {"id": "j1"}}
        place = int(query.get("cursor", "0") or 0)
        following = {"nextCursor": str(place + 20)} if place + 20 < len(DOCUMENTS) else {}
        if path.endswith("/export") and query["format"] == "html":
            return {"pages": [{"path": self.page_path, "html": "<p>é</p>"}]}
        if path.endswith("/export"):
            head = {} if place else {"version": 1, "models": [{"id": "hero", "kind": "section"}]}
            return head | {"documents": DOCUMENTS[place : place + 20]} | following
        if path.endswith("/documents/page"):
            return {"documents": DOCUMENTS[place : place + 20], "total": len(DOCUMENTS)} | following
        if path.endswith("/import"):
            outcome = {"outcome": "refused", "error": "No \x1b[31mtitle"}
            return {
                "items": [
                    one | (outcome if one["id"] == "bad" else {"outcome": "created"}) for one in body["documents"]
                ]
            }
        if path.startswith("/content-index/"):
            step = {"seen": 50, "written": 2}
            return step | ({} if body.get("cursor") else {"cursor": "page"})
        return {"spaces": [{"site": "shop", "environment": "main", "title": "Shop", "domain": ""}]}


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> ContentService:
    service = ContentService()

    @contextmanager
    def connect(_url: str | None, _token: str | None) -> Iterator[FermataClient]:
        with FermataClient("http://127.0.0.1:9", "t", transport=httpx.MockTransport(service)) as client:
            yield client

    monkeypatch.setattr(content, "connect_to_service", connect)
    return service


def test_spaces_and_documents_are_listed(service: ContentService) -> None:
    assert "shop" in run_command("content", "list").output
    listed = run_command("content", "list", "shop", "page", "--json")
    assert len(json.loads(listed.output)) == 30
    assert [path for _, path, _ in service.sent][1:] == ["/content/shop/main/documents/page"] * 2


def test_an_export_is_one_file_which_an_import_sends_in_parts(service: ContentService, tmp_path: Path) -> None:
    target = tmp_path / "shop.json"
    assert run_command("content", "export", "shop/staging", str(target)).exit_code == 0
    whole = json.loads(target.read_text("utf-8"))
    assert (whole["documents"], whole["models"]) == (DOCUMENTS, [{"id": "hero", "kind": "section"}])
    service.sent.clear()
    result = run_command("content", "import", "shop/copy", str(target))
    assert (result.exit_code, result.output) == (0, "30 created\n")
    assert [(len(body["models"]), len(body["documents"])) for _, _, body in service.sent] == [(1, 25), (0, 5)]
    assert {path for _, path, _ in service.sent} == {"/content/shop/copy/import"}


def test_what_an_import_refuses_is_said_and_fails(service: ContentService, tmp_path: Path) -> None:
    source = tmp_path / "bad.json"
    source.write_text(json.dumps({"documents": [{"model": "page", "id": "bad"}]}))
    result = run_command("content", "import", "shop", str(source))
    assert result.exit_code == 1
    assert "refused page/bad: No " in result.output
    assert "\x1b" not in result.output
    source.write_text("[1]")
    assert run_command("content", "import", "shop", str(source)).exit_code == 1


def test_pages_are_written_as_files_and_never_outside_of_their_folder(service: ContentService, tmp_path: Path) -> None:
    assert run_command("content", "export", "shop", str(tmp_path / "site"), "--html").exit_code == 0
    assert (tmp_path / "site" / "de" / "news.html").read_text("utf-8") == "<p>é</p>"
    service.page_path = "../evil.html"
    assert run_command("content", "export", "shop", str(tmp_path / "site"), "--html").exit_code == 1
    assert not (tmp_path / "evil.html").exists()


def test_a_space_is_indexed_until_nothing_is_left(service: ContentService) -> None:
    result = run_command("content", "reindex", "shop", "--credential", "c1", "--model", "m1")
    assert result.output == "100 documents, 4 indexed\n"
    assert service.sent[0] == ("PUT", "/content-index/shop/main", {"credentialId": "c1", "modelId": "m1"})
    assert run_command("content", "reindex", "shop", "--model", "m1").exit_code == 2


def test_a_space_is_deleted_when_its_name_is_confirmed(service: ContentService) -> None:
    assert run_command("content", "delete", "shop").exit_code == 1  # nobody answers the question
    assert service.sent == []
    result = run_command("content", "delete", "shop", "--yes")
    assert (result.exit_code, "job j1" in result.output) == (0, True)
    assert service.sent == [("DELETE", "/content-spaces/shop/main", None)]
