"""boto3 asks the emulator over plain connections, and notices nothing of it: responses, errors, retries, streams."""

import fcntl
import functools
import hashlib
import resource
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError, ConnectionClosedError, EndpointConnectionError, ReadTimeoutError
from urllib3.util.wait import wait_for_read

from local.aws_clients import make_session
from local.emulator.runtime import bootstrap, direct_connection
from local.request_signature import HttpRequest, RunCredentials, SignatureRefusedError, read_signature

CREDENTIALS = RunCredentials("FERMATATEST", "secret")
ITEM_FOUND = b'{"Item":{"pk":{"S":"one"},"data":{"B":"AAE="}}}'
REFUSED = b'{"__type":"com.amazonaws#ConditionalCheckFailedException","message":"no"}'


def build_response(body: bytes, status: str = "200 OK", headers: bytes = b"") -> bytes:
    length = b"Content-Length: %d\r\n" % len(body)
    return b"HTTP/1.1 %b\r\n%b%b\r\n%b" % (status.encode(), length, headers, body)


class ScriptedEmulator:
    """Gives each connection the responses of a list, one after the other, and closes it then."""

    def __init__(self, listener: socket.socket, connections: Sequence[Sequence[bytes]]) -> None:
        self.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        self.heads: list[bytes] = []
        self.bodies: list[bytes] = []
        self._listener = listener
        self._connections = connections

    def serve(self) -> None:
        for responses in self._connections:
            connection, _ = self._listener.accept()
            with connection, connection.makefile("rb") as received:
                for response in responses:
                    head = b"".join(iter(received.readline, b"\r\n"))
                    lengths = [int(line[15:]) for line in head.split(b"\r\n") if line.startswith(b"Content-Length")]
                    self.bodies.append(received.read(sum(lengths)))
                    self.heads.append(head)
                    connection.sendall(response)


@contextmanager
def serve_responses(*connections: Sequence[bytes]) -> Iterator[ScriptedEmulator]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        emulator = ScriptedEmulator(listener, connections)
        thread = threading.Thread(target=emulator.serve, daemon=True)  # a test that fails does not wait for it
        thread.start()
        yield emulator
        thread.join()


@functools.cache
def get_direct_session() -> Any:
    """Get the session of all clients here, which reads the descriptions of services once."""
    session = make_session(CREDENTIALS)
    direct_connection.send_directly(session)
    return session


def make_client(url: str, attempts: int = 1, service: str = "dynamodb") -> Any:
    config = Config(retries={"mode": "standard", "total_max_attempts": attempts})
    return get_direct_session().client(service, endpoint_url=url, config=config)


def read_item(client: Any) -> Any:
    return client.get_item(TableName="t", Key={"pk": {"S": "one"}})


def test_requests_follow_each_other_on_one_connection() -> None:
    with serve_responses([build_response(ITEM_FOUND), build_response(b"{}"), build_response(ITEM_FOUND)]) as emulator:
        client = make_client(emulator.url)
        assert read_item(client)["Item"] == {"pk": {"S": "one"}, "data": {"B": b"\x00\x01"}}
        assert "Item" not in read_item(client)
        assert read_item(client)["ResponseMetadata"]["HTTPStatusCode"] == 200
    assert all(head.startswith(b"POST / HTTP/1.1\r\nHost: 127.0.0.1:") for head in emulator.heads)
    assert all(b"Authorization: AWS4-HMAC-SHA256 " in head for head in emulator.heads)


def test_a_response_in_pieces_is_one_response() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve_slowly() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(1 << 16)
                for byte in build_response(ITEM_FOUND):
                    connection.sendall(bytes((byte,)))

        thread = threading.Thread(target=serve_slowly)
        thread.start()
        assert read_item(make_client(f"http://127.0.0.1:{listener.getsockname()[1]}"))["Item"]["pk"] == {"S": "one"}
        thread.join()


def test_an_error_of_the_service_is_one() -> None:
    refused = build_response(REFUSED, "400 Bad Request")
    with serve_responses([refused]) as emulator, pytest.raises(ClientError) as error:
        read_item(make_client(emulator.url))
    assert error.value.response["Error"]["Code"] == "ConditionalCheckFailedException"


def test_an_item_of_text_is_read_as_boto3_reads_it() -> None:
    found = build_response(b'{"Item":{"pk":{"S":"one"},"n":{"N":"1"}}}', headers=b"x-amzn-RequestId: r1\r\n")
    with serve_responses([found], [found]) as emulator:
        response = read_item(make_client(emulator.url))
        plain_client = make_session(CREDENTIALS).client("dynamodb", endpoint_url=emulator.url)
        assert response == read_item(plain_client)
    assert response["ResponseMetadata"]["RequestId"] == "r1"


@pytest.mark.parametrize(("service", "call"), [("dynamodb", read_item), ("sfn", lambda it: it.list_state_machines())])
def test_a_call_is_signed_as_the_emulator_demands(service: str, call: Callable[[Any], object]) -> None:
    with serve_responses([build_response(b'{"stateMachines":[]}')]) as emulator:
        call(make_client(emulator.url, service={"sfn": "stepfunctions"}.get(service, service)))
    first_line, *lines = emulator.heads[0].decode().split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
    method, path, _ = first_line.split()
    request = HttpRequest(method, path, "", headers)
    signature = read_signature(request, CREDENTIALS)
    signature.verify(request, CREDENTIALS, hashlib.sha256(emulator.bodies[0]).hexdigest())
    assert headers["x-amz-target"].startswith(("DynamoDB_", "AWSStepFunctions."))
    with pytest.raises(SignatureRefusedError):
        signature.verify(request, CREDENTIALS, hashlib.sha256(b"another body").hexdigest())


def test_who_watches_all_calls_of_a_client_sees_each_before_it_is_made() -> None:
    with serve_responses([build_response(ITEM_FOUND)]) as emulator:
        client = make_client(emulator.url)
        seen: list[tuple[str, int]] = []
        client.meta.events.register("before-call", lambda model, **_: seen.append((model.name, len(emulator.heads))))
        client.meta.events.register("after-call", lambda model, **_: seen.append((model.name, len(emulator.heads))))
        read_item(client)
    assert seen == [("GetItem", 0), ("GetItem", 1)]


def test_an_error_is_met_as_often_as_boto3_tries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "sleep", lambda _: None)
    broken = build_response(b"{}", "500 Internal Server Error")
    with serve_responses([broken] * 3) as emulator, pytest.raises(ClientError) as error:
        read_item(make_client(emulator.url, attempts=3))
    assert error.value.response["ResponseMetadata"]["RetryAttempts"] == 2
    assert len(emulator.heads) == 3


def test_a_connection_that_was_closed_meanwhile_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    # The emulator closes it at once. That this has arrived is waited for.
    monkeypatch.setattr(direct_connection, "wait_for_read", lambda connection, _: wait_for_read(connection, 60))
    with serve_responses([build_response(b"{}")], [build_response(ITEM_FOUND)]) as emulator:
        client = make_client(emulator.url)
        read_item(client)
        assert read_item(client)["Item"]["pk"] == {"S": "one"}


def test_a_process_with_many_files_keeps_its_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    connect = socket.create_connection
    descriptors: list[int] = []

    def connect_late(*arguments: Any) -> socket.socket:
        with connect(*arguments) as early:
            descriptors.append(fcntl.fcntl(early.fileno(), fcntl.F_DUPFD_CLOEXEC, 1500))
            return socket.socket(fileno=descriptors[-1])

    monkeypatch.setattr(socket, "create_connection", connect_late)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2000), hard))
    try:
        with serve_responses([build_response(ITEM_FOUND)] * 2) as emulator:
            client = make_client(emulator.url)
            assert [read_item(client)["Item"]["pk"] for _ in range(2)] == [{"S": "one"}] * 2
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert len(descriptors) == 1, "One connection carried both."
    assert descriptors[0] > 1024


def test_a_connection_that_the_emulator_will_close_is_not_used_again() -> None:
    closing = build_response(b"{}", headers=b"Connection: close\r\n")
    with serve_responses([closing], [build_response(ITEM_FOUND)]) as emulator:
        client = make_client(emulator.url)
        read_item(client)
        assert read_item(client)["Item"]["pk"] == {"S": "one"}


@pytest.mark.parametrize(
    "response",
    [
        b"",
        b"HTTP/1.1 200 OK\r\n",
        build_response(ITEM_FOUND)[:-5],
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"nonsense\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n",
    ],
    ids=["nothing", "no head", "half a body", "no length", "no HTTP", "no number"],
)
def test_a_connection_that_fails_is_tried_again_by_boto3(response: bytes) -> None:
    with serve_responses([response], [response], [build_response(ITEM_FOUND)]) as emulator:
        with pytest.raises(ConnectionClosedError):
            read_item(make_client(emulator.url))
        found = read_item(make_client(emulator.url, attempts=2))
    assert found["ResponseMetadata"]["RetryAttempts"] == 1


def test_nobody_who_listens_and_no_answer_in_time_are_errors_of_boto3(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(direct_connection, "READ_SECONDS", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        with pytest.raises(ReadTimeoutError):
            read_item(make_client(url))
    with pytest.raises(EndpointConnectionError):
        read_item(make_client(url))


def test_an_object_that_is_in_memory_is_stored_with_one_request() -> None:
    stored = build_response(b"", headers=b'ETag: "1"\r\n')
    with serve_responses([stored, stored]) as emulator:
        client = make_client(emulator.url, service="s3")
        assert client.put_object(Bucket="b", Key="k", Body=b"data")["ETag"] == '"1"'
        client.put_object(Bucket="b", Key="k", Body=b"data")
    assert [head.split(b"\r\n")[0] for head in emulator.heads] == [b"PUT /b/k HTTP/1.1"] * 2


def test_other_services_and_other_machines_are_left_to_boto3(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[str] = []
    monkeypatch.setattr(direct_connection, "DirectConnection", sent.append)
    sender = direct_connection.DirectSender()

    class Request:
        stream_output = False
        url = "https://dynamodb.eu-west-1.amazonaws.com/"

    assert sender.send(Request()) is None
    Request.url = "http://127.0.0.1:1/"
    Request.stream_output = True
    assert sender.send(Request()) is None
    with serve_responses([build_response(b"")]) as emulator:
        make_client(emulator.url, service="s3").get_object(Bucket="b", Key="k")
    assert sent == []


def test_what_functions_share_has_clients_that_send_directly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)
    bootstrap.preload_service_models(["dynamodb"])
    assert boto3.DEFAULT_SESSION is not None
    answers = boto3.DEFAULT_SESSION.events.emit("before-send.dynamodb.GetItem", request=OtherRequest())
    senders = [type(getattr(handler, "__self__", None)).__name__ for handler, _ in answers]
    assert senders.count("DirectSender") == 1, "other handlers are those of test libraries"


class OtherRequest:
    """A request that is none of the emulator's."""

    stream_output = False
    url = "https://elsewhere.example/"
