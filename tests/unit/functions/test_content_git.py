"""A space is connected to a Git repository, pulled, pushed, and moved as files, over HTTP."""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import pytest

from fermata.aws.resources import Resources
from fermata.content.content_space import ContentSpace, SpaceKey
from fermata.content.documents.change_document import update_document
from fermata.content.documents.document import ContentAuthor, DocumentKey
from fermata.content.model_store import create_space
from fermata.content_api import file_requests
from fermata.domain.caller import Caller
from functions.credentials import app
from tests.git_server import GitServer, serve_git
from tests.proxy_events import make_proxy_event
from tests.tenant_tokens import TokenSigner, make_tenant
from tests.unit.content.files.project_samples import make_tree, text_of
from tests.uploads import put_upload

SPACE, COPY = SpaceKey("bakery", "studio"), SpaceKey("bakery", "copy")
ADA = ContentAuthor("ada")
FAQ_EN = ".contentrain/content/marketing/faq/en.json"
FRESH = DocumentKey("faq", "a1b2c3d4e5f6")
PASSWORD = "a very secret word"


class GitApi:
    """Sends requests of somebody who manages content, or may do less."""

    def __init__(self, signer: TokenSigner) -> None:
        self.signer = signer

    def send(
        self, method: str, path: str, body: Any = None, right: str = "ai.content.manage"
    ) -> tuple[int, dict[str, Any]]:
        path, _, query = path.partition("?")
        event = make_proxy_event(
            method, f"/admin/api/ai/{path}", self.signer.bearer_headers(capabilities=[right]), body
        )
        event["queryStringParameters"] = dict(parse_qsl(query))
        answer = app.handler(event, None)
        assert PASSWORD not in answer["body"]
        return answer["statusCode"], json.loads(answer["body"])

    def expect(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        status, answer = self.send(method, path, body)
        assert status == 200, answer
        return answer


@pytest.fixture
def local_stage(deployed: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the functions reach servers on this machine."""
    monkeypatch.setenv("FERMATA_STAGE", "local")


@pytest.fixture
def api(resources: Resources, deployed: None) -> GitApi:
    """The API of a tenant with the sample project and an empty space."""
    api = GitApi(make_tenant(resources, "bakery"))
    for space in (SPACE, COPY):
        create_space(resources, space, ContentSpace(locales=("en", "tr")), ADA)
    api.expect("POST", "content-files/studio/main", {"files": make_tree()})
    return api


@pytest.fixture
def server(tmp_path: Path) -> Iterator[GitServer]:
    with serve_git(tmp_path) as server:
        server.password = PASSWORD
        yield server


def connect(api: GitApi, server: GitServer, space: str = "studio", **changes: str) -> dict[str, Any]:
    body = {"url": server.url, "username": "ada", "password": PASSWORD} | changes
    return dict(api.expect("PUT", f"content-git/{space}/main", body)["repository"])


@pytest.mark.usefixtures("local_stage")
def test_a_project_moves_through_a_repository(api: GitApi, server: GitServer) -> None:
    assert api.expect("GET", "content-git/studio/main") == {"repository": None}
    connected = connect(api, server)
    assert (connected["hasPassword"], connected["branch"], connected["commit"]) == (True, "main", "")
    waiting = api.expect("GET", "content-git/studio/main/status")
    assert (waiting["commit"], waiting["outgoing"], waiting["isSynchronised"]) == ("", len(make_tree()), False)
    pushed = api.expect("POST", "content-git/studio/main/push", {"message": "Begin"})
    assert (pushed["pushed"], server.list_commits(), server.read_files()) == (len(make_tree()), ["Begin"], make_tree())
    connect(api, server, "copy")
    pulled = api.expect("POST", "content-git/copy/main/pull")
    assert (pulled["commit"], pulled["pulled"] > 0) == (pushed["commit"], True)
    assert api.expect("GET", "content-git/copy/main/status") == {
        "commit": pushed["commit"], "incoming": 0, "outgoing": 0, "isSynchronised": True, "conflicts": [],
    }  # fmt: skip
    assert api.expect("DELETE", "content-git/copy/main") == {"ok": True}
    assert api.send("POST", "content-git/copy/main/pull")[0] == 404


@pytest.mark.usefixtures("local_stage")
def test_a_conflict_is_shown_before_and_decided_by_the_caller(
    api: GitApi, server: GitServer, resources: Resources
) -> None:
    connect(api, server)
    api.expect("POST", "content-git/studio/main/push")
    entries = json.loads(make_tree()[FAQ_EN])
    entries[FRESH.id]["answer"] = "By hand."
    server.commit({FAQ_EN: text_of(entries)})
    update_document(resources, SPACE, FRESH, ADA, lambda content: content.with_fields("en", {"answer": "Here."}))
    [conflict] = api.expect("GET", "content-git/studio/main/status")["conflicts"]
    assert (conflict["model"], conflict["id"]) == FRESH
    assert conflict["fields"][0] | {"theirs": "By hand.", "ours": "Here."} == conflict["fields"][0]
    status, refused = api.send("POST", "content-git/studio/main/push")
    assert (status, refused["code"], refused["conflicts"]) == (409, "mergeConflict", [conflict])
    assert api.expect("POST", "content-git/studio/main/push", {"prefer": "ours"})["pushed"] > 0
    assert json.loads(server.read_files()[FAQ_EN])[FRESH.id]["answer"] == "Here."


@pytest.mark.usefixtures("local_stage")
def test_a_wrong_password_is_refused_and_a_right_one_stays_for_its_address(api: GitApi, server: GitServer) -> None:
    connect(api, server, password="wrong")
    status, refused = api.send("GET", "content-git/studio/main/status")
    assert (status, refused["code"]) == (409, "gitAccessRefused")
    connect(api, server)
    again = api.expect("PUT", "content-git/studio/main", {"url": server.url, "username": "ada", "branch": "other"})
    assert again["repository"]["hasPassword"]
    other = {"url": "https://93.184.216.34/site.git", "username": "ada"}
    assert not api.expect("PUT", "content-git/studio/main", other)["repository"]["hasPassword"]


@pytest.mark.parametrize(
    "body",
    [
        {"url": "http://169.254.169.254/site.git"},
        {"url": "ssh://example.com/site.git"},
        {"url": "https://93.184.216.34/site.git", "branch": "a..b"},
        {"url": "https://93.184.216.34/site.git", "root": "../up"},
        {"url": "https://93.184.216.34/site.git", "token": "x"},
    ],
)
def test_a_repository_that_cannot_be_one_is_refused(api: GitApi, body: dict[str, str]) -> None:
    assert api.send("PUT", "content-git/studio/main", body)[0] == 400
    assert api.expect("GET", "content-git/studio/main") == {"repository": None}


@pytest.mark.parametrize("right", ["ai.content.read", "ai.content.write"])
def test_only_managers_reach_the_repository(api: GitApi, right: str) -> None:
    for method, path in (("GET", ""), ("PUT", ""), ("DELETE", ""), ("GET", "/status"), ("POST", "/pull")):
        assert api.send(method, f"content-git/studio/main{path}", right=right)[0] == 403
    assert api.send("POST", "content-files/studio/main", {"files": {}}, right)[0] == 403


def test_files_leave_in_parts_and_come_back_the_same(api: GitApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_requests, "MAX_FILES_PART_BYTES", 300)
    largest = max(make_tree().values(), key=len)
    assert len(largest) > 300, "one file does not fit into a part"
    files: dict[str, str] = {}
    cursor, digests = "", set()
    while True:
        status, part = api.send("GET", f"content-files/studio/main?cursor={cursor}", right="ai.content.read")
        assert status == 200
        assert sum(map(len, part["files"].values())) <= 300
        for path, text in part["files"].items():
            files[path] = files.get(path, "") + text
        digests.add(part["digest"])
        cursor = part.get("nextCursor", "")
        if not cursor:
            break
    assert (files, len(digests)) == (make_tree(), 1)
    again = api.expect("POST", "content-files/studio/main", {"files": files})
    assert (again["written"], again["deleted"], again["models"]) == (0, 0, 0)


def test_a_large_project_is_uploaded_first(api: GitApi, resources: Resources) -> None:
    caller = Caller(tenant="bakery", user="ada", capabilities=frozenset())
    ref = put_upload(resources, caller, "snapshot", json.dumps(make_tree()).encode())
    assert api.expect("POST", "content-files/copy/main", {"uploadRef": ref})["written"] > 0
    assert api.expect("GET", "content-files/copy/main")["files"] == make_tree()
    for raw in (b"[1]", b"{", b'{"a": 1}'):
        broken = put_upload(resources, caller, "snapshot", raw)
        status, answer = api.send("POST", "content-files/copy/main", {"uploadRef": broken})
        assert (status, "JSON object" in answer["error"]) == (400, True)
    missing = f"snapshot-2-{hashlib.sha256(b'x').hexdigest()}-{int(resources.clock.time()) + 60}"
    assert api.send("POST", "content-files/copy/main", {"uploadRef": missing})[0] == 404


def test_files_that_cannot_be_read_change_nothing(api: GitApi) -> None:
    before = api.expect("GET", "content-files/studio/main")
    for files in ({}, make_tree() | {FAQ_EN: "{"}, make_tree() | {FAQ_EN: text_of({FRESH.id: {"question": 1}})}):
        status, answer = api.send("POST", "content-files/studio/main", {"files": files})
        assert (status, bool(answer["error"])) == (400, True)
    assert api.send("POST", "content-files/studio/main", {})[0] == 400
    assert api.expect("GET", "content-files/studio/main") == before
