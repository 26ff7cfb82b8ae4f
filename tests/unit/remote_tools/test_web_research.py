"""Web search, pages and research of the built-in tools, against a scripted service and the address guard."""

from collections.abc import Callable
from typing import Any

import pytest

from fermata.remote_tools.built_in import web_research
from fermata.remote_tools.built_in.built_in_call import BuiltInCall
from fermata.remote_tools.built_in.html_text import extract_page_text
from fermata.remote_tools.manifest_tool_executor import AttemptFailed
from fermata.signed_requests.signed_post import open_guarded_connection
from tests.growth.measure_growth import MAX_GROWTH, measure_growth
from tests.scripted_tool_server import ScriptedToolServer
from tests.unit.remote_tools.test_built_in_tools import KEY, name_stored_image, query_of, run

PAGE = (
    "<html><head><title>Rye &amp; oats</title><style>p{}</style></head><body><nav>Menu</nav><p>Dark<br>bread</p></body>"
)


@pytest.fixture(autouse=True)
def base(tool_server: ScriptedToolServer, monkeypatch: pytest.MonkeyPatch) -> str:
    url = f"http://127.0.0.1:{tool_server.server_port}"
    monkeypatch.setattr(web_research, "EXA_URL", url)
    monkeypatch.setattr(web_research, "POLL_SECONDS", 0.01)
    return url


def test_pages_are_found_with_sentences_of_each(tool_server: ScriptedToolServer) -> None:
    found = {"title": "Rye", "url": "https://a.example/rye", "highlights": ["One.", "Two."], "author": "Ada", "x": 1}
    script = {"title": "Evil", "url": "javascript:alert(1)"}
    tool_server.script_answer({"results": [found, script], "costDollars": {"total": 0.005}})
    data = run("web_quickSearch", {"query": "rye", "numResults": 99, "recentOnly": True, "category": "news"})["data"]
    assert data["results"] == [
        {"title": "Rye", "url": "https://a.example/rye", "snippet": "One. … Two.", "author": "Ada"}
    ]
    assert (data["totalResults"], data["costDollars"], data["query"]) == (1, 0.005, "rye")
    call = tool_server.calls[0]
    assert (call.path, call.headers["x-api-key"]) == ("/search", KEY)
    assert (call.body["numResults"], call.body["category"]) == (20, "news")
    assert "startPublishedDate" in call.body


def test_any_search_that_answers_with_json_is_described_by_options(tool_server: ScriptedToolServer, base: str) -> None:
    tool_server.script_answer({"web": {"hits": [{"name": "Rye", "link": "https://a.example", "text": "Bread."}, 7]}})
    options = {"resultsPath": "web.hits", "titleField": "name", "urlField": "link", "snippetField": "text"}
    data = run("web_quickSearch", {"query": "rye & oats"}, searchUrl=f"{base}/find?q={{query}}", **options)["data"]
    assert data["results"] == [{"title": "Rye", "url": "https://a.example", "snippet": "Bread."}]
    assert query_of(tool_server) == {"q": ["rye & oats"]}
    wrong = run("web_quickSearch", {"query": "rye"}, searchUrl=f"{base}/find?q={{query}}", resultsPath="nothing")
    assert "resultsPath" in wrong["error"]["message"]


@pytest.mark.parametrize("answer", [[], {"results": "x"}, {"results": [{"url": 7}]}, {}])
def test_a_search_that_answers_with_something_else_finds_nothing_or_fails(
    tool_server: ScriptedToolServer, answer: Any
) -> None:
    tool_server.script_answer(answer)
    envelope = run("web_quickSearch", {"query": "rye"})
    assert not envelope["ok"] or envelope["data"]["results"] == []


def test_a_refused_key_is_said_without_the_key(tool_server: ScriptedToolServer) -> None:
    tool_server.script_answer({"error": f"bad key {KEY}"}, 401)
    message = run("web_quickSearch", {"query": "rye"})["error"]["message"]
    assert "401" in message
    assert KEY not in message


def test_pages_of_the_service_have_a_status_each(tool_server: ScriptedToolServer) -> None:
    urls = ["https://a.example/1", "https://a.example/2"]
    results = [{"url": urls[0], "title": "One", "text": "x" * 50, "summary": "Short"}]
    tool_server.script_answer({"results": results, "statuses": [{"id": urls[1], "status": "error", "error": "gone"}]})
    data = run("web_fetchContent", {"urls": urls, "textMaxCharacters": 10, "includeSummary": True})["data"]
    assert [(one["status"], one["text"], one.get("error")) for one in data["contents"]] == [
        ("success", "x" * 10, None),
        ("error", "", "gone"),
    ]
    assert tool_server.calls[0].body["summary"] is True


def test_a_report_is_waited_for(tool_server: ScriptedToolServer) -> None:
    tool_server.script_answer({"researchId": "r/1", "status": "pending"})
    tool_server.script_answer({"status": "running"})
    sources = [{"title": "A", "url": "https://a.example"}]
    done = {"status": "completed", "output": {"content": "# Rye"}, "citations": sources}
    tool_server.script_answer(done)
    data = run("web_deepResearch", {"topic": "Rye", "sections": ["History"]})["data"]
    assert (data["report"]["markdown"], data["researchId"], data["status"]) == ("# Rye", "r/1", "completed")
    assert data["citations"] == [{"title": "A", "url": "https://a.example", "snippet": ""}]
    assert [call.path for call in tool_server.calls] == ["/research/v1", "/research/v1/r%2F1", "/research/v1/r%2F1"]


def test_a_report_that_takes_longer_is_asked_for_again_by_its_id(
    tool_server: ScriptedToolServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(web_research, "POLL_SECONDS", 1.0)
    monkeypatch.setattr(web_research, "_wait", lambda _call: None)
    tool_server.script_answer({"status": "running"})
    data = run("web_deepResearch", {"topic": "Rye", "researchId": "r1", "maxWaitTime": 2})["data"]
    assert (data["success"], data["researchId"]) == (False, "r1")
    assert [call.path for call in tool_server.calls] == ["/research/v1/r1"] * 2
    tool_server.answers.clear()
    tool_server.script_answer({"status": "failed", "error": "no sources"})
    assert "no sources" in run("web_deepResearch", {"topic": "Rye", "researchId": "r1"})["error"]["message"]


@pytest.mark.parametrize(
    ("html", "text"),
    [
        (PAGE, "Dark\nbread"),
        ("a < b &lt; c", "a < b < c"),
        ("<script>x</script>y", "y"),
        ("<script>never closed", ""),
        ("<!-- a > b -->c", "c"),
        ("<p>1<p>2", "1\n2"),
        ("<p", ""),
        ("<head><title>Rye</title><link rel=x><body><header>Dark</header>bread", "Dark\nbread"),
        ("İ<SCRIPT>x</SCRIPT>y", "İ\ny"),
    ],
)
def test_a_page_becomes_its_text(html: str, text: str) -> None:
    assert extract_page_text(html, 1000).text == text


@pytest.mark.parametrize("piece", ["<", "<!--", "</", "<p ", "<script>", "<script", "<title", "<nav></", "&", "\u0130"])
def test_a_page_is_read_in_time_in_proportion_to_its_length(piece: str) -> None:
    def prepare(size: int) -> Callable[[], object]:
        page = piece * (size // len(piece))
        return lambda: extract_page_text(page, size)

    assert measure_growth(prepare, 4000, 500_000) <= MAX_GROWTH


def test_the_title_of_a_page_is_read() -> None:
    assert extract_page_text(PAGE, 100).title == "Rye & oats"


def fetch_without_key(url: str, **options: str) -> Any:
    with open_guarded_connection(loopback=True, seconds=5.0) as connection:
        call = BuiltInCall({"urls": [url]}, "", options, connection, name_stored_image, "turn/1/0")
        return web_research.fetch_pages(call)["contents"][0]


def test_without_a_service_pages_of_named_hosts_are_read(tool_server: ScriptedToolServer, base: str) -> None:
    tool_server.script_answer(PAGE.encode(), headers={"content-type": "text/html; charset=utf-8"})
    page = fetch_without_key(f"{base}/rye", hosts="127.0.0.1")
    assert (page["title"], page["text"], page["status"]) == ("Rye & oats", "Dark\nbread", "success")
    refused = fetch_without_key(f"{base}/rye", hosts="a.example")
    assert (refused["status"], "not among the hosts" in refused["error"]) == ("error", True)
    assert "No host may be reached" in fetch_without_key(f"{base}/rye")["error"]
    assert len(tool_server.calls) == 1


@pytest.mark.parametrize(
    ("kind", "page"),
    [
        ("text/html; charset=ISO-8859-1", "<p>Größe “1”".encode("cp1252")),
        ("text/html", '<meta charset="windows-1252"><p>Größe “1”'.encode("cp1252")),
        ("text/html; charset=utf-8", '<meta charset="windows-1252"><p>Größe “1”'.encode()),
        ("text/html; charset=punycode", "<p>Größe “1”".encode()),
        ("text/plain; charset=windows-1252", "Größe “1”".encode("cp1252")),
    ],
)
def test_a_page_is_read_in_the_encoding_that_it_names(
    tool_server: ScriptedToolServer, base: str, kind: str, page: bytes
) -> None:
    tool_server.script_answer(page, headers={"content-type": kind})
    assert fetch_without_key(f"{base}/size", hosts="127.0.0.1")["text"] == "Größe “1”"


def test_a_page_that_has_moved_is_that_of_the_url_that_was_asked_for(tool_server: ScriptedToolServer) -> None:
    tool_server.script_answer({"results": [{"id": "http://a.example", "url": "https://a.example/", "text": "Rye"}]})
    (page,) = run("web_fetchContent", {"urls": ["http://a.example"]})["data"]["contents"]
    assert (page["status"], page["text"]) == ("success", "Rye")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"topic": " "}, "topic is empty"),
        *(({"topic": "Rye", "researchId": one}, "no researchId") for one in (".", "..")),
    ],
)
def test_research_of_nothing_asks_the_service_nothing(
    tool_server: ScriptedToolServer, arguments: dict[str, str], words: str
) -> None:
    assert words in run("web_deepResearch", arguments)["error"]["message"]
    assert tool_server.calls == []


def test_a_key_is_needed_for_the_service_and_said_so() -> None:
    with open_guarded_connection(loopback=True, seconds=5.0) as connection:
        call = BuiltInCall({"query": "rye"}, "", {}, connection, name_stored_image, "turn/1/0")
        with pytest.raises(AttemptFailed, match="No key is set"):
            web_research.search_web(call)
