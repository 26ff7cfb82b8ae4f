"""Search the web, read pages and let a service research, for the model (decision 0464).

The searches are those of Exa or a server that is compatible with it, or of any server that answers a GET request with
JSON, which the options describe. Pages are fetched by Exa, or by ourselves from the hosts that the options name.
"""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote, urlsplit

from fermata.domain.errors import ProviderError
from fermata.remote_tools.built_in.built_in_call import BuiltInCall
from fermata.remote_tools.built_in.html_text import extract_page_text
from fermata.remote_tools.built_in.http_requests import fetch_text
from fermata.remote_tools.manifest_tool_executor import AttemptFailed

EXA_URL = "https://api.exa.ai"
MAX_RESULTS = 20
MAX_FETCHED_PAGES = 10
MAX_PAGE_CHARS = 10_000
POLL_SECONDS = 3.0
MAX_RESEARCH_SECONDS = 100
_RECENT_DAYS = 7
_LABEL = "The web search"


def search_web(call: BuiltInCall) -> Any:
    """Return pages for a query, each with a few sentences."""
    query = str(call.arguments["query"]).strip()
    if not query:
        raise AttemptFailed("The query is empty: say what is looked for.")
    limit = min(max(int(call.arguments.get("numResults", 5)), 1), MAX_RESULTS)
    found = _search_generic(call, query) if call.options.get("searchUrl") else _search_exa(call, query, limit)
    results = [result for result in map(_to_result, found["results"][:limit]) if result["url"]]
    return {"success": True, "results": results, "totalResults": len(results), "query": query, **found["costs"]}


def _search_exa(call: BuiltInCall, query: str, limit: int) -> dict[str, Any]:
    arguments = call.arguments
    body: dict[str, Any] = {
        "query": query,
        "numResults": limit,
        "contents": {
            "highlights": {"numSentences": 3, "highlightsPerUrl": 2},
            "livecrawl": arguments.get("livecrawl", "fallback"),
        },
    }
    body |= {name: arguments[name] for name in ("category", "includeDomains", "excludeDomains") if name in arguments}
    if arguments.get("recentOnly"):
        body["startPublishedDate"] = (datetime.now(UTC) - timedelta(days=_RECENT_DAYS)).strftime("%Y-%m-%dT%H:%M:%SZ")
    answer = _require_object(call.post_json(_LABEL, f"{_get_base(call)}/search", body, _build_headers(call)))
    results = [one | {"snippet": " … ".join(map(str, one.get("highlights") or []))} for one in _list(answer, "results")]
    return {"results": results, "costs": _read_cost(answer)}


def _search_generic(call: BuiltInCall, query: str) -> dict[str, Any]:
    """Ask the server that the options describe: `searchUrl` with `{query}` in it, and where its answer has what."""
    options = call.options
    url = options["searchUrl"].replace("{query}", quote(query, safe=""))
    headers = {options.get("keyHeader", "authorization"): call.api_key} if call.api_key else {}
    answer = call.get_json(_LABEL, url, {}, headers)
    for name in filter(None, options.get("resultsPath", "results").split(".")):
        answer = answer.get(name) if isinstance(answer, dict) else None
    if not isinstance(answer, list):
        raise AttemptFailed("The search answered without a list where the option 'resultsPath' says that there is one.")
    names = {
        "title": options.get("titleField", "title"),
        "url": options.get("urlField", "url"),
        "snippet": options.get("snippetField", "content"),
    }
    results = [{own: one.get(name) for own, name in names.items()} for one in answer if isinstance(one, dict)]
    return {"results": results, "costs": {}}


def _to_result(found: Mapping[str, Any]) -> dict[str, Any]:
    result = {name: str(found.get(name) or "")[:2000] for name in ("title", "url", "snippet")}
    if _get_scheme(result["url"]) not in ("http", "https"):
        result["url"] = ""
    return result | {name: str(found[name])[:200] for name in ("publishedDate", "author") if found.get(name)}


def fetch_pages(call: BuiltInCall) -> Any:
    """Return the text of pages, each with what went wrong with it."""
    urls = [str(url).strip() for url in call.arguments["urls"]][:MAX_FETCHED_PAGES]
    chars = min(max(int(call.arguments.get("textMaxCharacters", MAX_PAGE_CHARS)), 1), MAX_PAGE_CHARS)
    if call.api_key:
        return _fetch_with_exa(call, urls, chars)
    return {"success": True, "contents": [_fetch_page(call, url, chars) for url in urls]}


def _fetch_page(call: BuiltInCall, url: str, chars: int) -> dict[str, Any]:
    try:
        kind, text = fetch_text(call, url)
    except AttemptFailed as error:
        return {"url": url, "title": "", "text": "", "status": "error", "error": str(error)}
    page = extract_page_text(text, chars) if "html" in kind or not kind else None
    title, words = page or ("", text[:chars])
    return {"url": url, "title": title, "text": words, "status": "success"}


def _fetch_with_exa(call: BuiltInCall, urls: list[str], chars: int) -> Any:
    body: dict[str, Any] = {"urls": urls, "text": {"maxCharacters": chars}}
    if call.arguments.get("includeSummary"):
        query = call.arguments.get("summaryQuery")
        body["summary"] = {"query": query} if query else True
    answer = _require_object(call.post_json(_LABEL, f"{_get_base(call)}/contents", body, _build_headers(call)))
    results = _list(answer, "results")  # the id is the URL as it was asked for, and the other one where it led to
    pages = {str(one[name]): one for name in ("url", "id") for one in results if one.get(name)}
    statuses = {str(one.get("id")): one for one in _list(answer, "statuses")}
    contents = []
    for url in urls:
        page, status = pages.get(url), statuses.get(url, {})
        own = page or {}
        content = {"url": url, **{name: str(own.get(name) or "")[:chars] for name in ("title", "text", "summary")}}
        failed = page is None or status.get("status") == "error"
        reason = {"error": str(status.get("error") or "The page was not found.")[:300]} if failed else {}
        contents.append(content | {"status": "error" if failed else "success"} | reason)
    return {"success": True, "contents": contents, **_read_cost(answer)}


def research_topic(call: BuiltInCall) -> Any:
    """Let the service research a topic, and wait for its report for a while.

    What takes longer is asked for again with its `researchId`.
    """
    research_id = str(call.arguments.get("researchId") or "") or _begin_research(call)
    if not research_id.strip("."):  # "." and ".." would name other addresses of the service
        raise AttemptFailed("This is no researchId. Take that of the answer before, or leave it out to begin.")
    seconds = min(max(int(call.arguments.get("maxWaitTime", MAX_RESEARCH_SECONDS)), 1), MAX_RESEARCH_SECONDS)
    url = f"{_get_base(call)}/research/v1/{quote(research_id, safe='')}"
    for _ in range(max(1, int(seconds / POLL_SECONDS))):
        answer = _require_object(call.get_json(_LABEL, url, {}, _build_headers(call)))
        if answer.get("status") == "completed":
            return _to_report(call, research_id, answer)
        if answer.get("status") in ("failed", "canceled"):
            raise AttemptFailed(f"The research {research_id[:80]} has failed: {str(answer.get('error') or '')[:300]}")
        _wait(call)
    return {
        "success": False,
        "researchId": research_id,
        "status": "running",
        "error": f"It is not finished after {seconds} seconds. Ask again with this researchId.",
        "topic": str(call.arguments.get("topic", "")),
    }


def _begin_research(call: BuiltInCall) -> str:
    arguments = call.arguments
    topic = str(arguments["topic"]).strip()
    if not topic:
        raise AttemptFailed("The topic is empty: say what is to be found out.")
    wanted = [topic]
    if sections := arguments.get("sections"):
        wanted.append("Write these sections: " + ", ".join(map(str, sections)) + ".")
    if arguments.get("includeStatistics"):
        wanted.append("Include statistics with their sources.")
    body = {"instructions": "\n".join(wanted), "model": arguments.get("model", "exa-research")}
    answer = _require_object(call.post_json(_LABEL, f"{_get_base(call)}/research/v1", body, _build_headers(call)))
    research_id = str(answer.get("researchId") or answer.get("id") or "")
    if not research_id:
        raise AttemptFailed("The research was not begun: the service has named none.")
    return research_id


def _to_report(call: BuiltInCall, research_id: str, answer: Mapping[str, Any]) -> dict[str, Any]:
    output = answer.get("output")
    content = output.get("content") if isinstance(output, dict) else output
    text = content if isinstance(content, str) else ""
    citations = [_to_result(one) for one in _list(answer, "citations")]
    return {
        "success": True,
        "researchId": research_id,
        "status": "completed",
        "report": {"summary": text[:500], "content": content, "markdown": text},
        "citations": [{name: one[name] for name in ("title", "url", "snippet")} for one in citations],
        "topic": str(call.arguments.get("topic", "")),
        **_read_cost(answer),
    }


def _wait(call: BuiltInCall) -> None:
    try:
        call.connection.sleep(POLL_SECONDS)
    except ProviderError as error:
        raise AttemptFailed("The research was stopped.") from error


def _get_base(call: BuiltInCall) -> str:
    return call.options.get("baseUrl", EXA_URL).rstrip("/")


def _build_headers(call: BuiltInCall) -> dict[str, str]:
    if not call.api_key:
        raise AttemptFailed("No key is set for the web search. An administrator sets one with the tool.")
    return {"x-api-key": call.api_key}


def _require_object(answer: Any) -> dict[str, Any]:
    if not isinstance(answer, dict):
        raise AttemptFailed("The web search answered with something that is not known.")
    return answer


def _list(answer: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    value = answer.get(name)
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _read_cost(answer: Mapping[str, Any]) -> dict[str, float]:
    cost = answer.get("costDollars")
    total = cost.get("total") if isinstance(cost, dict) else cost
    return {"costDollars": float(total)} if isinstance(total, int | float) else {}


def _get_scheme(url: str) -> str:
    try:
        return urlsplit(url).scheme
    except ValueError:
        return ""
