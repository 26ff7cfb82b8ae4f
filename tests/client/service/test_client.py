"""HTTP requests of the client: method, path and body, responses, errors, event streams."""

import json
from collections.abc import Callable

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fermata_client import (
    FermataClient,
    InvalidResponseError,
    RequestRefusedError,
    RetryPolicy,
    ServiceUnreachableError,
    TurnLostError,
)
from fermata_client.service.errors import FermataClientError, is_retryable
from fermata_client.service.transport import parse_events


def client(answer: Callable[[httpx.Request], httpx.Response]) -> FermataClient:
    return FermataClient("http://service/", "secret", transport=httpx.MockTransport(answer))


def test_every_call_carries_the_token_and_leaves_out_what_was_not_said() -> None:
    requests: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        requests.append(request)
        return httpx.Response(201, json={"conversation": {"id": "c1"}})

    with client(answer) as service:
        assert service.create_conversation("site", model_id="m") == {"id": "c1"}
    assert str(requests[0].url) == "http://service/admin/api/ai/conversations"
    assert requests[0].headers["authorization"] == "Bearer secret"
    assert json.loads(requests[0].content) == {"scope": "site", "modelId": "m"}


def test_a_service_under_a_base_path_is_asked_there() -> None:
    """A custom domain may map a path to the service."""
    paths: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        paths.append(request.url.path)
        return httpx.Response(201, json={"conversation": {"id": "c1"}, "tools": []})

    with FermataClient("https://ai.example/fermata/", "secret", transport=httpx.MockTransport(answer)) as service:
        service.create_conversation("site")
        service.list_remote_tools()
    assert paths == ["/fermata/admin/api/ai/conversations", "/fermata/tools"]


ONE = {"conversation": {"id": "c"}, "credential": {"id": "k"}, "default": {"scope": "site"}}
MANY: dict[str, object] = {"conversations": [], "credentials": [{"id": "k"}], "models": [{"id": "m"}], "defaults": {}}
MANY["tools"] = [{"name": "list_modules"}]
CALLS: list[tuple[str, Callable[[FermataClient], object], object, object]] = [
    (
        "GET /conversations?scope=site&limit=2",
        lambda client: client.list_conversations("site", limit=2),
        None,
        ONE | MANY,
    ),
    ("GET /conversations/c?before=7", lambda client: client.list_messages("c", before="7"), None, ONE | MANY),
    ("GET /conversations/a%2F..%2Fb", lambda client: client.get_conversation("a/../b"), None, ONE["conversation"]),
    (
        "PUT /conversations/c",
        lambda client: client.update_conversation("c", title="T"),
        {"title": "T"},
        ONE["conversation"],
    ),
    ("DELETE /conversations/c", lambda client: client.delete_conversation("c"), None, None),
    ("GET /credentials", lambda client: client.list_credentials(), None, MANY["credentials"]),
    (
        "POST /credentials",
        lambda client: client.create_credential("openai", "Mine", api_key="sk"),
        {"providerId": "openai", "authMode": "apiKey", "displayLabel": "Mine", "apiKey": "sk"},
        ONE["credential"],
    ),
    (
        "POST /credentials",
        lambda client: client.create_credential("ollama", "Ours", base_url="https://o.example"),
        {"providerId": "ollama", "authMode": "baseUrl", "displayLabel": "Ours", "baseUrl": "https://o.example"},
        ONE["credential"],
    ),
    ("PUT /credentials/k", lambda client: client.update_credential("k", api_key=""), {"apiKey": ""}, ONE["credential"]),
    ("DELETE /credentials/k", lambda client: client.delete_credential("k"), None, None),
    ("POST /credentials/k/test", lambda client: client.test_credential("k"), None, ONE | MANY),
    (
        "GET /providers/openai/models?credentialId=k",
        lambda client: client.list_models("openai", "k"),
        None,
        MANY["models"],
    ),
    ("GET /tools/site", lambda client: client.list_tools("site"), None, MANY["tools"]),
    ("GET /defaults", lambda client: client.get_defaults(), None, MANY["defaults"]),
    (
        "PUT /defaults/site",
        lambda client: client.set_default("site", "k", "m"),
        {"credentialId": "k", "modelId": "m"},
        ONE["default"],
    ),
    ("DELETE /defaults/site", lambda client: client.clear_default("site"), None, None),
    ("GET /audit?tz=Europe%2FBerlin", lambda client: client.get_audit(tz="Europe/Berlin"), None, ONE | MANY),
]


@pytest.mark.parametrize(("line", "call", "body", "expected"), CALLS, ids=[line for line, *_ in CALLS])
def test_each_call_is_one_request(
    line: str, call: Callable[[FermataClient], object], body: object, expected: object
) -> None:
    requests: list[tuple[str, object]] = []

    def answer(request: httpx.Request) -> httpx.Response:
        path = request.url.raw_path.decode().removeprefix("/admin/api/ai")
        requests.append((f"{request.method} {path}", json.loads(request.content) if request.content else None))
        is_empty = line == "DELETE /defaults/site"
        return httpx.Response(204) if is_empty else httpx.Response(200, json=ONE | MANY)

    with client(answer) as service:
        assert call(service) == expected
    assert requests == [(line, body)]


def test_tools_may_be_asked_for_by_the_names_one_knows() -> None:
    requests: list[httpx.Request] = []

    def service(request: httpx.Request) -> httpx.Response:
        requests.append(request)
        return httpx.Response(200, json=MANY)

    with client(service) as fermata:
        fermata.list_tools("site", names="prefixed")
        fermata.list_tools("site")
    assert [request.headers.get("fermata-tool-names") for request in requests] == ["prefixed", None]


def test_an_answer_without_what_was_asked_for_is_broken() -> None:
    with client(lambda request: httpx.Response(200, json={"ok": True})) as service:
        with pytest.raises(InvalidResponseError, match="has no 'credentials'"):
            service.list_credentials()
        with pytest.raises(InvalidResponseError, match="has no 'conversation'"):
            service.get_conversation("c")


def test_a_turn_without_a_conversation_makes_one() -> None:
    bodies: list[dict[str, object]] = []

    def answer(request: httpx.Request) -> httpx.Response:
        bodies.append(json.loads(request.content))
        if request.url.path.endswith("/conversations"):
            return httpx.Response(201, json={"conversation": {"id": "c1"}})
        assert request.headers["idempotency-key"] == "k"
        return httpx.Response(200, content=b'{"type":"done","seq":1}\n')

    with client(answer) as service, service.start_turn("site", "hi", idempotency_key="k", model="m") as events:
        assert list(events) == [{"type": "done", "seq": 1}]
    assert bodies == [{"scope": "site", "modelId": "m"}, {"conversationId": "c1", "prompt": "hi"}]


def test_a_detached_start_asks_for_json() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        assert request.headers["accept"] == "application/json"
        assert json.loads(request.content)["content"] == [{"kind": "text", "text": "hi"}]
        return httpx.Response(202, json={"bridgeId": "b"})

    with client(answer) as service:
        content = [{"kind": "text", "text": "hi"}]
        assert service.start_turn_detached("site", content=content, conversation_id="c") == {"bridgeId": "b"}


def test_a_prompt_and_content_at_once_are_a_mistake() -> None:
    with client(lambda request: httpx.Response(500)) as service, pytest.raises(ValueError, match="either a prompt"):
        service.start_turn_detached("site", "hi", content=[], conversation_id="c")


@pytest.mark.parametrize(
    ("response", "error", "retry_after"),
    [
        (httpx.Response(409, json={"error": "busy"}, headers={"retry-after": "2"}), "busy", 2.0),
        (httpx.Response(403, json={"message": "Missing token"}), "Missing token", None),
        (httpx.Response(502, content=b"<html>"), "Bad Gateway", None),
        (httpx.Response(404, json=[1], headers={"retry-after": "soon"}), "Not Found", None),
    ],
)
def test_a_refusal_says_why_and_when_to_come_back(
    response: httpx.Response, error: str, retry_after: float | None
) -> None:
    with client(lambda request: response) as service:
        with pytest.raises(RequestRefusedError) as plain:
            service.get_bridge("b")
        with pytest.raises(RequestRefusedError) as streamed, service.stream_events("b"):
            pass
    for caught in (plain.value, streamed.value):
        assert (caught.status, caught.error, caught.retry_after) == (response.status_code, error, retry_after)


def test_a_service_that_is_not_there_is_unreachable() -> None:
    with (
        FermataClient("http://127.0.0.1:9", "t") as service,
        pytest.raises(ServiceUnreachableError, match="No service answers at"),
    ):
        service.get_bridge("b")


@pytest.mark.parametrize("url", ["notaurl", "ftp://service"])
def test_what_no_request_can_be_made_of_is_unreachable(url: str) -> None:
    with FermataClient(url, "t") as service, pytest.raises(ServiceUnreachableError, match="No request can be made"):
        service.get_bridge("b")


@given(st.lists(st.integers(1, 40), max_size=30))
def test_events_are_the_same_however_the_bytes_are_cut(sizes: list[int]) -> None:
    events = [{"type": "text", "text": "那个🦀\u2028\u0085 a"}, {"type": "done", "seq": 2}]
    stream_bytes = b"\n".join([b"", *(json.dumps(e, ensure_ascii=False).encode() for e in events), b" \r", b'{"cut'])
    chunks, at = [], 0
    for size in sizes:
        chunks.append(stream_bytes[at : at + size])
        at += size
    assert list(parse_events([*chunks, stream_bytes[at:]])) == events


def test_a_line_that_is_no_event_breaks_the_stream() -> None:
    for line in (b"<html>\n", b"[1]\n"):
        with pytest.raises(InvalidResponseError):
            list(parse_events([line]))


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (ServiceUnreachableError("x"), True),
        (InvalidResponseError("x"), True),
        (RequestRefusedError(503, "x"), True),
        (RequestRefusedError(429, "x"), True),
        (RequestRefusedError(409, "x"), False),
        (TurnLostError("x"), False),
    ],
)
def test_only_what_may_pass_is_tried_again(error: FermataClientError, expected: bool) -> None:
    assert is_retryable(error) is expected


def test_patience_waits_longer_each_time_and_as_long_as_it_was_asked_to() -> None:
    waits: list[float] = []
    patience = RetryPolicy(max_failures=5, first_delay=1.0, max_delay=4.0, sleep=waits.append)
    answers = iter(
        [
            ServiceUnreachableError("a"),
            RequestRefusedError(503, "b", retry_after=9),
            ServiceUnreachableError("c"),
            ServiceUnreachableError("d"),
        ]
    )

    def verb() -> str:
        raise next(answers)

    with pytest.raises(StopIteration):
        patience.call_with_retries(verb)
    assert 0.5 <= waits[0] <= 1.0
    assert waits[1] == 9
    assert 2.0 <= waits[2] <= waits[3] * 2 <= 8.0


def test_patience_ends() -> None:
    def verb() -> str:
        raise ServiceUnreachableError("gone")

    with pytest.raises(TurnLostError, match="Gave up after 3 attempts"):
        RetryPolicy(max_failures=3, sleep=lambda seconds: None).call_with_retries(verb)
