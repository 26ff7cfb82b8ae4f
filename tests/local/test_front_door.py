"""Test that the front door passes on, streams and refuses requests as API Gateway does with the same template."""

import json
import socket
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from local import deploy
from local.aws_clients import get_client
from local.processes import ChildProcess, EmulatorProcess, run_environment
from tests.local.test_deploy import SMALL
from tests.waiting import BACKSTOP_SECONDS

MB = 1024 * 1024


@pytest.fixture(scope="module")
def door(emulator: EmulatorProcess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """URL of a front door to a small service."""
    outputs = deploy.deploy_stack(emulator.endpoint, {"Stage": "local"}, template_path=SMALL, stack_name="door")
    client = get_client("lambda", emulator.endpoint)
    stream = client.get_function_configuration(FunctionName=outputs["StreamName"])
    settings = {
        "FERMATA_ENDPOINT": emulator.endpoint,
        "FERMATA_API": f"{outputs['ApiId']}/{outputs['StageName']}",
        "FERMATA_STREAM_VARIABLES": json.dumps(stream["Environment"]["Variables"]),
        "FERMATA_TEMPLATE": str(SMALL),
        "FERMATA_PORT": "0",
        "FERMATA_HOSTS": "Editor.test:8080, other.test",
    }
    log = tmp_path_factory.mktemp("door") / "door.log"
    child = ChildProcess(
        [sys.executable, "-m", "local.parent_watch", "local.front_door"], run_environment() | settings, log
    )
    yield child.ready_line
    child.stop()


@pytest.fixture
def http(door: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=door, trust_env=False, timeout=BACKSTOP_SECONDS) as client:
        yield client


def test_method_path_query_and_body_arrive_as_they_were_sent(http: httpx.Client) -> None:
    answer = http.request("PATCH", "/echo/a%20b?x=1&x=2&y=%C3%A9", content='{"text":"\\u00e9 é"}'.encode())
    said = answer.json()
    assert answer.status_code == 418
    assert (said["httpMethod"], said["pathParameters"]) == ("PATCH", {"id": "a b"})
    assert said["query"] == {"x": ["1", "2"], "y": ["é"]}
    assert said["body"] == '{"text":"\\u00e9 é"}'


def test_headers_and_cookies_arrive(http: httpx.Client) -> None:
    sent = {
        "authorization": "Bearer t",
        "cookie": "a=1; b=2",
        "origin": "http://localhost:5173",
        "accept": "text/plain",
        "x-amz-date": "a caller's",
        "sec-fetch-site": "cross-site",
    }
    headers = {name.lower(): value for name, value in http.get("/echo/1", headers=sent).json()["headers"].items()}
    assert sent.items() <= headers.items()
    assert not [name for name in headers if name.startswith("x-fermata")]
    assert headers["x-forwarded-for"] == "127.0.0.1"


def test_platform_headers_cannot_be_sent_by_a_caller(http: httpx.Client) -> None:
    sent = {"x-amzn-request-context": "{}", "x-forwarded-for": "8.8.8.8", "connection": "keep-alive, x-own"}
    headers = {name.lower(): value for name, value in http.get("/echo/1", headers=sent).json()["headers"].items()}
    assert "x-amzn-request-context" not in headers
    assert "connection" not in headers
    assert headers["x-forwarded-for"] == "127.0.0.1"


def test_the_functions_headers_come_back_and_the_emulators_do_not(http: httpx.Client) -> None:
    answer = http.get("/echo/headers")
    assert answer.headers["x-own"] == "1"
    assert answer.headers["x-request-id"] == "from-the-function"
    assert answer.headers.get_list("set-cookie") == ["a=1", "b=2; HttpOnly"]
    assert not [name for name in answer.headers if name.startswith(("x-amz", "x-amzn")) or name == "server"]


def test_every_response_has_a_request_id_the_callers_if_it_is_valid(http: httpx.Client) -> None:
    assert http.get("/echo/1", headers={"x-request-id": "mine-1"}).headers["x-request-id"] == "mine-1"
    made = http.get("/nowhere", headers={"x-request-id": 'not "sane"'}).headers["x-request-id"]
    assert len(made) == 36
    assert http.get("/echo/1", headers={"x-request-id": "mine-2"}).json()["headers"]["x-request-id"] == "mine-2"


@pytest.mark.parametrize(
    "host", ["evil.example:{port}", "evil.example", "127.0.0.1.evil.example:{port}", "localhost@x"]
)
@pytest.mark.parametrize("path", ["/echo/1", "/stream", "/_bucket/fermata/uploads/x", "/nowhere"])
def test_under_another_name_than_its_own_it_says_which_to_use(http: httpx.Client, host: str, path: str) -> None:
    answer = http.post(path, headers={"host": host.format(port=http.base_url.port)}, content=b"{}")
    assert answer.status_code == 421
    assert "Use http://127.0.0.1 or http://localhost" in answer.json()["error"]
    assert not [name for name in answer.headers if name.startswith("access-control-")]


@pytest.mark.parametrize("host", ["localhost:{port}", "LOCALHOST:{port}", "127.0.0.1:9", "[::1]:{port}", "editor.test"])
def test_under_its_own_names_it_answers(http: httpx.Client, host: str) -> None:
    assert http.get("/echo/1", headers={"host": host.format(port=http.base_url.port)}).status_code == 418


CREATE_STACK = (
    "Action=CreateStack&Version=2010-05-15&StackName=through-the-door&TemplateBody=%7B%22Resources%22%3A%7B%7D%7D"
)
FOR_CLOUDFORMATION = "Credential=test/20261128/us-east-1/cloudformation/aws4_request"


@pytest.mark.parametrize(
    ("path", "headers", "body"),
    [
        (f"/echo/1?{CREATE_STACK}", {}, ""),
        (f"/echo/1?X-Amz-{FOR_CLOUDFORMATION}&{CREATE_STACK}", {}, ""),
        ("/echo/1", {"content-type": "application/x-www-form-urlencoded"}, CREATE_STACK),
        ("/echo/1", {"authorization": f"AWS4-HMAC-SHA256 {FOR_CLOUDFORMATION}, SignedHeaders=host"}, CREATE_STACK),
        ("/echo/1", {"x-amz-target": "DynamoDB_20120810.ListTables"}, "{}"),
        ("/echo/1", {"x-forwarded-host": "dynamodb.us-east-1.amazonaws.com"}, "{}"),
    ],
)
def test_what_is_passed_on_reaches_the_function_and_no_aws_service(
    http: httpx.Client, emulator: EmulatorProcess, path: str, headers: dict[str, str], body: str
) -> None:
    assert http.post(path, headers=headers, content=body.encode()).status_code == 418
    stacks = get_client("cloudformation", emulator.endpoint).list_stacks()["StackSummaries"]
    assert "through-the-door" not in [stack["StackName"] for stack in stacks]


@pytest.mark.parametrize(
    "path",
    [
        "/echo/../../../../_ministack/reset",
        "/echo/%2e%2e/%2e%2e/_ministack/reset",
        "//_ministack/reset",
        "http://evil.example/_ministack/reset",
        "http://evil.example/echo/../../../_ministack/reset",
        "@evil.example/_ministack/reset",
    ],
)
def test_no_path_leads_out_of_the_api(door: str, emulator: EmulatorProcess, path: str) -> None:
    address = httpx.URL(door)
    before = get_client("dynamodb", emulator.endpoint).list_tables()["TableNames"]
    with socket.create_connection((address.host, address.port or 80), timeout=BACKSTOP_SECONDS) as connection:
        connection.sendall(f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n".encode())
        assert connection.recv(4096).startswith((b"HTTP/1.1 404", b"HTTP/1.1 418"))
    assert get_client("dynamodb", emulator.endpoint).list_tables()["TableNames"] == before != []


def test_an_unknown_path_is_the_templates_answer(http: httpx.Client) -> None:
    answer = http.post("/nowhere", content=b"{}")
    assert (answer.status_code, answer.json()) == (404, {"error": "Not found"})
    assert answer.headers["access-control-allow-origin"] == "*"


def test_a_function_that_fails_is_the_templates_answer(http: httpx.Client) -> None:
    answer = http.get("/echo/fail")
    assert (answer.status_code, answer.json()) == (502, {"error": "Could not answer"})
    assert http.get("/echo/1").status_code == 418


def test_a_stream_is_sent_as_it_comes(http: httpx.Client, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    with http.stream("POST", "/stream", params={"gate": str(gate)}, content=b"x" * 1000) as answer:
        lines = answer.iter_lines()
        first = next(lines)
        gate.touch()
        assert next(lines) == "last"
    assert '"colour": "red"' in first
    assert '"size": 1000' in first


@pytest.mark.parametrize("path", ["/echo/1", "/stream"])
@pytest.mark.parametrize(
    "body",
    [b"x" * (20 * MB), b"x" * (6 * MB), b'"' * (4 * MB)],
    ids=["20 MB", "6 MB and its frame", "4 MB of quotes, escaped"],
)
def test_a_body_above_the_platforms_limits_is_413(http: httpx.Client, path: str, body: bytes) -> None:
    answer = http.post(path, content=body)
    assert (answer.status_code, answer.json()) == (413, {"error": "Too large"})
    assert answer.headers["access-control-allow-origin"] == "*"


def test_after_a_refused_body_the_same_connection_serves_the_next_request(door: str) -> None:
    with httpx.Client(base_url=door, limits=httpx.Limits(max_connections=1), timeout=BACKSTOP_SECONDS) as one_line:
        for _ in range(2):
            assert one_line.post("/echo/1", content=b"x" * (7 * MB)).status_code == 413
            assert one_line.post("/stream", content=b"x" * (7 * MB)).status_code == 413
            assert one_line.post("/echo/1", content=b"small").json()["body"] == "small"


def test_a_body_within_the_limits_passes(http: httpx.Client) -> None:
    assert len(http.post("/echo/1", content=b"x" * (5 * MB)).json()["body"]) == 5 * MB


def test_an_endless_body_is_refused_while_it_streams_in(door: str) -> None:
    address = httpx.URL(door)
    chunk = b"100000\r\n" + b"x" * MB + b"\r\n"
    with socket.create_connection((address.host, address.port or 80), timeout=BACKSTOP_SECONDS) as connection:
        connection.sendall(b"POST /echo/1 HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")
        for _ in range(12):
            connection.sendall(chunk)
        assert connection.recv(4096).startswith(b"HTTP/1.1 413")


def test_a_declared_size_above_the_limit_is_refused_before_any_of_it_is_sent(door: str) -> None:
    address = httpx.URL(door)
    with socket.create_connection((address.host, address.port or 80), timeout=BACKSTOP_SECONDS) as connection:
        head = b"POST /echo/1 HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1073741824\r\nExpect: 100-continue\r\n\r\n"
        connection.sendall(head)
        assert connection.recv(4096).startswith(b"HTTP/1.1 413")


def test_an_answer_that_takes_long_does_not_hold_up_others(http: httpx.Client, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(http.get, "/echo/wait", params={"gate": str(gate)})
        assert http.get("/echo/1").status_code == 418
        assert not slow.done()
        gate.touch()
        assert slow.result().status_code == 418
