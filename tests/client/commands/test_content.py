"""`fermata content`: what is asked of the service, what is written to files, exit codes."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from fermata_client.commands.workspace import content, content_git
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
        if "/documents/page/" in path and not path.endswith("/p7"):
            return httpx.Response(404, json={"error": "There is no such page."})
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
        if path.endswith("/documents/page/p7"):
            return {"document": DOCUMENTS[7]}
        if "slug" in query:
            return {"documents": DOCUMENTS[7:8] if query["slug"] == "seven" else []}
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


@pytest.mark.parametrize(("name", "requests"), [("p7", 1), ("seven", 3)])
def test_a_document_is_shown_by_its_id_or_its_slug(service: ContentService, name: str, requests: int) -> None:
    assert json.loads(run_command("content", "show", "shop", "page", name).output)["id"] == "p7"
    assert len(service.sent) == requests


def test_a_document_that_is_not_there_is_said_so(service: ContentService) -> None:
    shown = run_command("content", "show", "shop", "page", "eight")
    assert shown.exit_code == 1
    assert "There is no such page" in str(shown.exception)


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


class ProjectService(ContentService):
    """Serves a project as files in two parts, and a repository."""

    def __init__(self) -> None:
        super().__init__()
        self.files = {".contentrain/config.json": '{"version": 1}\n', "blog/a b.md": "# É\n"}
        self.digests = ["d1", "d1"]
        self.repository: dict[str, Any] | None = None

    def _answer(self, path: str, query: dict[str, str], body: Any) -> Any:
        if path.startswith("/content-files/") and body is None:
            names = sorted(self.files)
            name, is_last = (names[1], True) if query.get("cursor") else (names[0], False)
            part = {"files": {name: self.files[name]}, "digest": self.digests[is_last]}
            return part if is_last else part | {"nextCursor": name}
        if path.startswith("/content-files/"):
            return {"written": len(body["files"]), "deleted": 0, "models": 1, "ignored": []}
        if path.endswith("/status"):
            fields = [{"field": "en.title"}]
            conflicts = [{"model": "faq", "id": "one", "fields": fields}]
            return {"commit": "c", "incoming": 2, "outgoing": 3, "isSynchronised": False, "conflicts": conflicts}
        if path.endswith(("/pull", "/push")):
            return {"commit": "0123456789abcdef", "pulled": 2, "pushed": 0, "ignored": ["odd.json"]}
        return {"repository": self.repository}


@pytest.fixture
def project(monkeypatch: pytest.MonkeyPatch) -> ProjectService:
    service = ProjectService()

    @contextmanager
    def connect(_url: str | None, _token: str | None) -> Iterator[FermataClient]:
        with FermataClient("http://127.0.0.1:9", "t", transport=httpx.MockTransport(service)) as client:
            yield client

    for module in (content, content_git):
        monkeypatch.setattr(module, "connect_to_service", connect)
    return service


@pytest.mark.parametrize("name", ["project.zip", "project"])
def test_a_project_is_written_as_files_and_read_from_them(project: ProjectService, tmp_path: Path, name: str) -> None:
    target = tmp_path / name
    assert "2 files" in run_command("content", "export", "shop", str(target)).output
    first = target.read_bytes() if target.is_file() else b""
    run_command("content", "export", "shop", str(target))
    assert (target.read_bytes() if target.is_file() else b"") == first
    done = run_command("content", "import", "shop/copy", str(target))
    assert "2 written" in done.output
    assert project.sent[-1] == ("POST", "/content-files/shop/copy", {"files": project.files})


def test_the_parts_of_a_sync_are_read_to_the_end() -> None:
    asked: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(str(request.url).partition("/content-sync/")[2])
        following = {"nextCursor": "a/b"} if len(asked) == 1 else {}
        return httpx.Response(200, json={"treeSha": "5c1f", "models": {}, "content": {}} | following)

    with FermataClient("http://127.0.0.1:9", "t", transport=httpx.MockTransport(answer)) as client:
        parts = list(client.iter_content_changes("shop", "4b0e"))
    assert [part.get("nextCursor") for part in parts] == ["a/b", None]
    assert asked == ["shop/main?treeSha=4b0e", "shop/main?cursor=a%2Fb"]


def test_an_export_of_files_that_changed_meanwhile_is_refused(project: ProjectService, tmp_path: Path) -> None:
    project.digests = ["d1", "d2"]
    failed = run_command("content", "export", "shop", str(tmp_path / "p.zip"))
    assert failed.exit_code != 0
    assert "during the export" in failed.output
    assert not (tmp_path / "p.zip").exists()


def test_a_folder_without_a_project_is_not_sent(project: ProjectService, tmp_path: Path) -> None:
    failed = run_command("content", "import", "shop", str(tmp_path))
    assert (failed.exit_code != 0, project.sent) == (True, [])
    assert "config.json" in failed.output


def test_a_repository_is_connected_with_a_password_that_no_argument_shows(
    project: ProjectService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_WORD", "secret")
    address = "https://git.example.com/shop.git"
    arguments = ("connect", "shop", address, "--username", "ada", "--password-env", "GIT_WORD")
    assert "secret" not in run_command("content", "git", *arguments).output
    body = {"url": address, "branch": "main", "root": "", "username": "ada", "password": "secret"}
    assert project.sent == [("PUT", "/content-git/shop/main", body)]


def test_both_sides_of_a_repository_are_shown_and_synchronised(project: ProjectService) -> None:
    assert run_command("content", "git", "status", "shop").exit_code != 0
    project.repository = {"url": "https://git.example.com/shop.git", "branch": "main", "root": ""}
    shown = run_command("content", "git", "status", "shop").output
    assert "2 changes to pull, 3 files to push" in shown
    assert "conflict faq/one en.title" in shown
    pulled = run_command("content", "git", "pull", "shop", "--prefer", "theirs").output
    assert "2 changes pulled" in pulled
    assert "0123456789ab" in pulled
    run_command("content", "git", "push", "shop", "--message", "Words")
    assert [body for *_, body in project.sent[-2:]] == [{"prefer": "theirs"}, {"message": "Words"}]
    run_command("content", "git", "disconnect", "shop")
    assert project.sent[-1][:2] == ("DELETE", "/content-git/shop/main")
