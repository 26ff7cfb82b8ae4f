"""Built-in tools ask the services behind them, within the limits of their manifests."""

import base64
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from fermata.aws import observability
from fermata.aws.resources import Resources
from fermata.domain.caller import Caller
from fermata.domain.errors import InvalidRequest, NotFound
from fermata.domain.tools import ToolOutput
from fermata.remote_tools.built_in import google_drive, image_generation, pexels, unsplash
from fermata.remote_tools.built_in.built_in_call import BuiltInCall, FoundPhoto, StorePhoto, refuse_photo
from fermata.remote_tools.built_in.built_in_tools import BUILT_IN_TOOLS_BY_NAME
from fermata.remote_tools.enable_built_in_tool import turn_on_built_in_tool
from fermata.remote_tools.manifest_tool_executor import APPROVED, ManifestTool, build_envelope, execute_tool
from fermata.remote_tools.pinned_tools import build_remote_tool
from fermata.remote_tools.tool_definition import ToolDefinition, build_definition_key
from fermata.remote_tools.tool_registry import ToolChange, change_tool, list_registered_tools, remove_tool
from fermata.signed_requests.signed_post import open_guarded_connection
from fermata.tools.tool import Approval
from tests.images import make_image
from tests.scripted_tool_server import ScriptedToolServer
from tests.tenant_tokens import make_tenant
from tests.unit.remote_tools.manifests import ExecutionTime

KEY = "k-1234567890"
ADMIN = Caller(tenant="bakery", user="root", capabilities=frozenset({"ai.tools.manage"}))
PHOTO = {
    "id": "abcdefghijk",
    "alt_description": "a loaf of bread",
    "urls": {"regular": "https://images.example/r", "thumb": "https://images.example/t"},
    "user": {"name": "Ada"},
    "links": {"html": "https://unsplash.example/p"},
}


@pytest.fixture(autouse=True)
def services(tool_server: ScriptedToolServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the scripted server be all services."""
    url = f"http://127.0.0.1:{tool_server.server_port}"
    monkeypatch.setattr(unsplash, "UNSPLASH_URL", url)
    monkeypatch.setattr(pexels, "PEXELS_URL", url)
    monkeypatch.setattr(image_generation, "OPENAI_IMAGES_URL", f"{url}/images")
    monkeypatch.setattr(image_generation, "GEMINI_MODELS_URL", f"{url}/models")
    monkeypatch.setattr(google_drive, "DRIVE_FILES_URL", f"{url}/files")


def run(
    name: str,
    arguments: Any,
    *,
    loopback: bool = True,
    store_photo: StorePhoto = refuse_photo,
    **options: str,
) -> Any:
    """Execute a tool and return its envelope. Images are stored as `stored:<bytes>`."""
    tool = BUILT_IN_TOOLS_BY_NAME[name]
    if "hosts!" in tool.options:
        options = {"hosts": "*"} | options
    with open_guarded_connection(loopback=loopback, seconds=5.0) as connection:

        def attempt(valid: Any) -> Any:
            call = BuiltInCall(valid, KEY, options, connection, name_stored_image, "turn/1/0", store_photo=store_photo)
            return tool.run(call)

        output = execute_tool(ManifestTool(tool.manifest, attempt), arguments, ExecutionTime().clock, policy=APPROVED)
    assert isinstance(output, ToolOutput)
    return build_envelope(output)


def name_stored_image(content: bytes, mime_type: str) -> str:
    return f"stored:{len(content)}:{mime_type}"


def query_of(tool_server: ScriptedToolServer) -> dict[str, list[str]]:
    return parse_qs(urlsplit(tool_server.calls[-1].path).query)


@pytest.mark.parametrize(("limit", "sent"), [(None, "3"), (9, "5"), (-1, "1")])
def test_photos_are_searched_with_their_attribution(
    tool_server: ScriptedToolServer, limit: int | None, sent: str
) -> None:
    tool_server.script_answer({"results": [PHOTO]})
    envelope = run("unsplash.search", {"query": "bread"} | ({"limit": limit} if limit is not None else {}))
    assert envelope["data"] == {
        "items": [
            {
                "id": "abcdefghijk",
                "imageUrl": "https://images.example/r",
                "thumbUrl": "https://images.example/t",
                "alt": "a loaf of bread",
                "author": "Ada",
                "sourceUrl": "https://unsplash.example/p",
            }
        ]
    }
    assert query_of(tool_server) == {"query": ["bread"], "per_page": [sent]}
    assert tool_server.calls[0].headers["authorization"] == f"Client-ID {KEY}"


PEXELS_PHOTO = {
    "id": 7,
    "width": 4000,
    "height": 3000,
    "url": "https://www.pexels.com/photo/7/",
    "photographer": "Ada",
    "photographer_url": "https://www.pexels.com/@ada",
    "avg_color": "#978E82",
    "src": {"medium": "https://images.example/m", "large2x": "https://images.example/l"},
    "alt": None,
}


@pytest.mark.parametrize(("per_page", "sent"), [(None, "10"), (500, "80"), (0, "1")])
def test_stock_photos_are_found_with_whose_they_are(
    tool_server: ScriptedToolServer, per_page: int | None, sent: str
) -> None:
    tool_server.script_answer({"photos": [PEXELS_PHOTO], "total_results": 9000})
    wanted = {"query": " bread ", "orientation": "square", "color": "red"}
    envelope = run("pexels_searchPhotos", wanted | ({} if per_page is None else {"perPage": per_page}))
    assert envelope["data"] == {
        "success": True,
        "photos": [
            {
                "id": 7,
                "photographer": "Ada",
                "photographerUrl": "https://www.pexels.com/@ada",
                "sourceUrl": "https://www.pexels.com/photo/7/",
                "alt": "",
                "previewUrl": "https://images.example/m",
                "imageUrl": "https://images.example/l",
                "avgColor": "#978E82",
                "width": 4000,
                "height": 3000,
            }
        ],
        "totalResults": 9000,
        "query": "bread",
    }
    assert query_of(tool_server) == {
        "query": ["bread"], "per_page": [sent], "orientation": ["square"], "color": ["red"],
    }  # fmt: skip
    assert tool_server.calls[0].headers["authorization"] == KEY


@pytest.mark.parametrize(
    ("answer", "status", "words"),
    [([], 200, "not known"), ({"photos": [{"id": 1}]}, 200, "not known"), ({"error": f"no {KEY}"}, 401, "401")],
)
def test_stock_photos_that_cannot_be_read_are_said_without_the_key(
    tool_server: ScriptedToolServer, answer: Any, status: int, words: str
) -> None:
    tool_server.script_answer(answer, status)
    message = run("pexels_searchPhotos", {"query": "bread"})["error"]["message"]
    assert words in message
    assert KEY not in message


def test_a_blank_search_finds_nothing_and_asks_nobody(tool_server: ScriptedToolServer) -> None:
    assert run("pexels_searchPhotos", {"query": " "})["data"]["photos"] == []
    assert run("unsplash.search", {"query": "  "})["data"] == {"items": []}
    assert tool_server.calls == []


@pytest.mark.parametrize(
    "arguments",
    [
        {"photoId": "abcdefghijk"},
        {"url": "https://unsplash.com/photos/a-loaf-of-bread-abcdefghijk"},
        {"url": "https://unsplash.com/photos/abcdefghijk?utm_source=x"},
    ],
)
def test_a_photo_that_is_used_is_reported(tool_server: ScriptedToolServer, arguments: dict[str, str]) -> None:
    tool_server.script_answer(PHOTO)
    data = run("unsplash.get_by_id", arguments)["data"]
    assert (data["photoId"], data["author"]) == ("abcdefghijk", "Ada")
    assert [call.path for call in tool_server.calls] == ["/photos/abcdefghijk", "/photos/abcdefghijk/download"]


@pytest.mark.parametrize("arguments", [{}, {"photoId": "../x"}, {"url": "https://unsplash.com/"}])
def test_a_photo_without_an_id_is_not_asked_for(tool_server: ScriptedToolServer, arguments: dict[str, str]) -> None:
    assert run("unsplash.get_by_id", arguments)["error"]["code"] == "tool_execution_failed"
    assert tool_server.calls == []


def test_an_image_of_openai_is_stored(tool_server: ScriptedToolServer) -> None:
    image = make_image()
    tool_server.script_answer({"data": [{"b64_json": base64.b64encode(image).decode()}]})
    envelope = run("image.generate", {"prompt": "a loaf", "style": "flat", "quality": "draft"})
    assert envelope["data"]["imageUrl"].startswith(f"stored:{len(image)}:image/")
    assert envelope["data"]["alt"] == "a loaf"
    body = tool_server.calls[0].body
    assert (body["model"], body["size"], body["quality"]) == ("gpt-image-1", "1536x1024", "low")
    assert body["prompt"] == "a loaf\n\nStyle: flat"


def test_an_image_of_gemini_is_stored(tool_server: ScriptedToolServer) -> None:
    part = {"inlineData": {"mimeType": "image/png", "data": base64.b64encode(make_image()).decode()}}
    tool_server.script_answer({"candidates": [{"content": {"parts": [{"text": "Here."}, part]}}]})
    envelope = run("image.generate", {"prompt": "a loaf", "aspectRatio": "square"}, provider="gemini")
    assert envelope["ok"]
    assert tool_server.calls[0].path == "/models/gemini-2.5-flash-image:generateContent"
    assert tool_server.calls[0].headers["x-goog-api-key"] == KEY
    assert tool_server.calls[0].body["generationConfig"]["imageConfig"] == {"aspectRatio": "1:1"}


@pytest.mark.parametrize("provider", ["openai", "gemini"])
@pytest.mark.parametrize("answer", [{}, [], {"data": [{}]}, {"data": [{"b64_json": "!!"}]}, {"candidates": [{}]}])
def test_an_answer_without_an_image_is_a_failure(tool_server: ScriptedToolServer, provider: str, answer: Any) -> None:
    tool_server.script_answer(answer)
    assert run("image.generate", {"prompt": "a loaf"}, provider=provider)["error"]["code"] == "tool_execution_failed"
    assert len(tool_server.calls) == 1


def test_the_folder_is_listed_and_quotes_are_escaped(tool_server: ScriptedToolServer) -> None:
    tool_server.script_answer({"files": [{"id": "f1", "name": "bread.jpg", "owners": [{"displayName": "Ada"}]}]})
    data = run("gdrive.browse", {"query": "it's"}, folderId="folder")["data"]
    assert (data["items"][0]["alt"], data["items"][0]["author"]) == ("bread.jpg", "Ada")
    assert "name contains 'it\\'s'" in query_of(tool_server)["q"][0]
    assert query_of(tool_server)["pageSize"] == ["5"]


def test_a_refusal_is_told_without_the_key(tool_server: ScriptedToolServer) -> None:
    tool_server.script_answer(f"bad key {KEY}".encode(), 401)
    error = run("unsplash.search", {"query": "bread"})["error"]
    assert error == {"code": "tool_execution_failed", "message": error["message"], "retryable": False}
    assert "401" in error["message"]
    assert KEY not in error["message"]


def test_a_url_is_fetched_as_json_or_text(tool_server: ScriptedToolServer) -> None:
    tool_server.script_answer({"a": 1}, headers={"content-type": "application/json"})
    tool_server.script_answer(b"<p>hi</p>", headers={"content-type": "text/html"})
    assert run("http_get", {"url": tool_server.url})["data"]["body"] == {"a": 1}
    assert run("http_get", {"url": tool_server.url})["data"]["body"] == "<p>hi</p>"


def test_at_most_three_redirects_are_followed_and_each_is_checked(tool_server: ScriptedToolServer) -> None:
    tool_server.script_answer(b"", 302, headers={"location": "/there"})
    assert "redirects more than 3 times" in run("http_get", {"url": tool_server.url})["error"]["message"]
    assert len(tool_server.calls) == 4
    tool_server.answers.clear()
    tool_server.script_answer(b"", 302, headers={"location": "https://169.254.169.254/latest"})
    assert "not public" in run("http_get", {"url": tool_server.url})["error"]["message"]


def test_only_public_and_allowed_hosts_are_reached(tool_server: ScriptedToolServer) -> None:
    assert not run("http_get", {"url": tool_server.url}, loopback=False)["ok"]
    refused = run("http_get", {"url": tool_server.url}, hosts="example.com, example.org")
    assert "not among the hosts" in refused["error"]["message"]
    unnamed = run("http_get", {"url": tool_server.url}, hosts="")  # as it was stored before hosts had to be named
    assert "No host may be reached" in unnamed["error"]["message"]
    assert tool_server.calls == []
    tool_server.script_answer({})
    assert run("http_get", {"url": tool_server.url}, hosts="example.com, 127.0.0.1")["ok"]


def test_a_host_that_is_not_named_is_a_security_event(
    tool_server: ScriptedToolServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines: list[dict[str, Any]] = []
    monkeypatch.setattr(observability, "log_warning", lambda event, **facts: lines.append({"event": event} | facts))
    tool_server.script_answer(b"", 302, headers={"location": "https://example.org.evil.example/?secret"})
    run("http_get", {"url": tool_server.url}, hosts="127.0.0.1 example.org")
    [line] = lines
    assert (line["event"], line["reason"]) == ("security.address_refused", "host_not_named")
    assert line["host"] == "example.org.evil.example"


@pytest.mark.parametrize(
    "hosts", ["*", "example.com", "a.example, B.example\nc-d.example", "127.0.0.1", "xn--mnchen-3ya.de"]
)
def test_hosts_are_named(resources: Resources, hosts: str) -> None:
    make_tenant(resources, "bakery")
    stored = turn_on_built_in_tool(resources, ADMIN, "http_post", options={"hosts": hosts})
    assert stored.view["options"] == {"hosts": hosts}


@pytest.mark.parametrize(
    "hosts", ["", " , ", "https://example.com", "example.com/path", "*.example.com", "* example.com", "a" * 999, "-a.b"]
)
def test_what_names_no_hosts_is_refused_in_words(resources: Resources, hosts: str) -> None:
    make_tenant(resources, "bakery")
    with pytest.raises(InvalidRequest, match="hosts"):
        turn_on_built_in_tool(resources, ADMIN, "http_get", options={"hosts": hosts})


@pytest.mark.parametrize(
    ("name", "hosts", "approval"),
    [
        ("http_get", "example.com", Approval.NEVER),
        ("http_get", "*", Approval.UNLESS_NAMED),
        ("http_post", "example.com", Approval.UNLESS_NAMED),
    ],
)
def test_a_person_approves_what_reaches_any_host_or_writes(
    resources: Resources, name: str, hosts: str, approval: Approval
) -> None:
    make_tenant(resources, "bakery")
    stored = turn_on_built_in_tool(resources, ADMIN, name, options={"hosts": hosts})
    key = build_definition_key(resources, "bakery", stored.view["definition"])
    definition = ToolDefinition.from_item(resources.tables.get_item_by_key(key) or {})
    assert build_remote_tool(definition, name).approval is approval


def test_json_is_posted_once_and_redirects_are_not_followed(tool_server: ScriptedToolServer) -> None:
    tool_server.script_answer({"ok": True})
    assert run("http_post", {"url": tool_server.url, "body": {"a": 1}})["ok"]
    assert tool_server.calls[0].body == {"a": 1}
    assert tool_server.calls[0].headers["idempotency-key"] == "turn/1/0"
    tool_server.answers.clear()
    tool_server.script_answer(b"", 307, headers={"location": "/there"})
    assert not run("http_post", {"url": tool_server.url})["ok"]
    assert len(tool_server.calls) == 2


def test_what_is_written_needs_approval_and_what_costs_is_not_repeated() -> None:
    manifests = {name: tool.manifest for name, tool in BUILT_IN_TOOLS_BY_NAME.items()}
    writing = {name: BUILT_IN_TOOLS_BY_NAME[name].writes_to_site for name in manifests}
    writing = {name: own for name, own in writing.items() if manifests[name].capability == "write"}
    assert writing == {"http_post": False, "pexels_downloadPhoto": True}, "only the latter is not asked for"
    repeated_never = [name for name, manifest in manifests.items() if not manifest.idempotent]
    assert repeated_never == ["image.generate", "http_post", "web_deepResearch", "pexels_downloadPhoto"]


def test_a_tool_is_there_once_it_is_turned_on(resources: Resources) -> None:
    make_tenant(resources, "bakery")
    view = turn_on_built_in_tool(resources, ADMIN, "Unsplash.Search", api_key=KEY, options={}).view
    assert (view["source"], view["manifest"]["name"]) == ("builtin", "unsplash.search")
    turn_on_built_in_tool(resources, ADMIN, "gdrive.browse", api_key=KEY, options={"folderId": "f"})
    turn_on_built_in_tool(resources, ADMIN, "http_get", options={"hosts": "example.com"})
    names = [tool["manifest"]["name"] for tool in list_registered_tools(resources, "bakery")]
    assert names == ["gdrive.browse", "http_get", "unsplash.search"]
    items = resources.tables._client.scan(TableName=resources.settings.settings_table)["Items"]
    assert KEY not in str(items)
    remove_tool(resources, ADMIN, "unsplash.search")
    assert len(list_registered_tools(resources, "bakery")) == 2


@pytest.mark.parametrize(
    ("name", "api_key", "options"),
    [
        ("unsplash.search", None, {}),
        ("http_get", KEY, {}),
        ("gdrive.browse", KEY, {}),
        ("gdrive.browse", KEY, {"folderId": " "}),
        ("image.generate", KEY, {"provider": "dalle"}),
        ("http_get", None, {"host": "example.com"}),
        ("http_post", None, {}),
    ],
)
def test_a_tool_needs_its_key_and_options(
    resources: Resources, name: str, api_key: str | None, options: dict[str, str]
) -> None:
    make_tenant(resources, "bakery")
    with pytest.raises(InvalidRequest):
        turn_on_built_in_tool(resources, ADMIN, name, api_key=api_key, options=options)


def test_there_is_no_other_built_in_tool(resources: Resources) -> None:
    with pytest.raises(NotFound, match=r"unsplash\.search"):
        turn_on_built_in_tool(resources, ADMIN, "insertHtml", options={})


def test_a_key_is_replaced_by_turning_the_tool_on_again(resources: Resources) -> None:
    make_tenant(resources, "bakery")
    first = turn_on_built_in_tool(resources, ADMIN, "unsplash.search", api_key=KEY, options={})
    second = turn_on_built_in_tool(resources, ADMIN, "unsplash.search", api_key="k-other", options={})
    assert first.view["definition"] != second.view["definition"]
    with pytest.raises(InvalidRequest, match="PUT"):
        change_tool(resources, ADMIN, "unsplash.search", ToolChange(headers={"x": "y"}))


def test_a_photo_of_pexels_becomes_an_image_of_the_site(tool_server: ScriptedToolServer) -> None:
    tool_server.script_answer(PEXELS_PHOTO)
    stored: list[FoundPhoto] = []

    def store(photo: FoundPhoto) -> dict[str, Any]:
        stored.append(photo)
        return {"imageId": "rye", "url": "/rye", "filename": photo.filename, "isNew": True}

    data = run("pexels_downloadPhoto", {"photoId": 7}, store_photo=store)["data"]
    assert (data["imageId"], data["photographer"], data["status"]) == ("rye", PEXELS_PHOTO["photographer"], "completed")
    assert PEXELS_PHOTO["url"] in data["message"]
    [photo] = stored
    assert (photo.url, photo.filename) == (PEXELS_PHOTO["src"]["large2x"], "pexels-7.jpeg")
    assert "pexels:7" in photo.tags
    assert urlsplit(tool_server.calls[-1].path).path == "/photos/7"
    tool_server.script_answer(PEXELS_PHOTO)
    assert "No site is chosen" in run("pexels_downloadPhoto", {"photoId": 7})["error"]["message"]
