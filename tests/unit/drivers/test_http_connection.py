"""The connection on real sockets: timeouts, aborts at every moment, and reuse."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

import pytest

from fermata.domain.errors import ProviderError
from fermata.drivers.transport.http_connection import HttpConnection
from tests.waiting import BACKSTOP_SECONDS

"""An abort takes effect within this time."""


class RawServer:
    """A server whose behaviour a test scripts on the raw socket."""

    def __init__(self, behave: Callable[[socket.socket], None]) -> None:
        self.accepted: list[socket.socket] = []
        self.ready = threading.Semaphore(0)
        """Released by a behaviour that has received the request."""
        self.over = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._behave = behave
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}/v1/messages"

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self.accepted.append(client)
            threading.Thread(target=self._talk, args=(client,), daemon=True).start()

    def _talk(self, client: socket.socket) -> None:
        try:
            while read_request(client):
                self._behave(client)
        except OSError:
            pass

    def close(self) -> None:
        self.over.set()
        self._listener.close()
        for client in self.accepted:
            client.close()


def read_request(client: socket.socket) -> bool:
    """Read one request with its body; False at the end of the connection."""
    data = b""
    while not data.endswith(b"\r\n\r\n{}"):
        chunk = client.recv(65536)
        if not chunk:
            return False
        data += chunk
    return True


def wait_until_closed(client: socket.socket) -> bool:
    """Return whether the other side has closed the connection."""
    client.settimeout(BACKSTOP_SECONDS)
    try:
        return client.recv(1) == b""
    except ConnectionResetError:
        return True
    except TimeoutError:
        return False


@contextmanager
def start_server(behave: Callable[[socket.socket], None]) -> Iterator[RawServer]:
    server = RawServer(behave)
    try:
        yield server
    finally:
        server.close()


def send_head(client: socket.socket) -> None:
    client.sendall(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")


def send_chunk(client: socket.socket, data: bytes) -> None:
    client.sendall(f"{len(data):x}\r\n".encode() + data + b"\r\n")


def answer_completely(client: socket.socket) -> None:
    send_head(client)
    send_chunk(client, b"hello")
    client.sendall(b"0\r\n\r\n")


def fetch_body(connection: HttpConnection, url: str) -> bytes:
    with connection.post("Peer", url, {}, b"{}") as answer:
        return b"".join(answer.chunks)


def hang_forever(client: socket.socket) -> None:
    """Wait until the test closes the connection."""
    client.recv(1)


def test_requests_share_one_connection(connection: HttpConnection) -> None:
    with start_server(answer_completely) as server:
        assert [fetch_body(connection, server.url) for _ in range(3)] == [b"hello"] * 3
        assert len(server.accepted) == 1


def test_a_response_is_drained_so_that_the_connection_can_be_reused(
    connection: HttpConnection,
) -> None:
    with start_server(answer_completely) as server:
        for _ in range(2):
            with connection.post("Peer", server.url, {}, b"{}") as answer:
                next(answer.chunks)
                connection.drain_response(answer)
        assert len(server.accepted) == 1


def test_before_it_waits_and_not_while_more_is_here_it_does_what_it_was_told(connection: HttpConnection) -> None:
    may_go_on = threading.Event()

    def pause_behind_two_chunks(client: socket.socket) -> None:
        client.sendall(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n1\r\nb\r\n")
        may_go_on.wait(BACKSTOP_SECONDS)
        client.sendall(b"1\r\nc\r\n0\r\n\r\n")

    with start_server(pause_behind_two_chunks) as server, connection.post("Peer", server.url, {}, b"{}") as answer:
        assert next(answer.chunks) == b"a"
        assert connection.run_before_wait(may_go_on.set)
        assert next(answer.chunks) == b"b"
        assert not may_go_on.is_set(), "it did not have to wait"
        assert b"".join(answer.chunks) == b"c", "the server goes on because the action was called"


def test_an_action_for_one_call_is_forgotten_by_the_next(connection: HttpConnection) -> None:
    called: list[str] = []
    with start_server(answer_completely) as server:
        with connection.call_scope():
            connection.run_before_wait(lambda: called.append("late"))
        assert fetch_body(connection, server.url) == b"hello"
    assert called == []


def test_draining_a_response_without_end_stops() -> None:
    """No other limit applies: without one of its own, draining would last as long as the test may."""

    def endless(client: socket.socket) -> None:
        send_head(client)
        send_chunk(client, b"hello")
        hang_forever(client)

    with (
        closing(HttpConnection(stall_seconds=3600, total_seconds=3600)) as connection,
        start_server(endless) as server,
        connection.post("Peer", server.url, {}, b"{}") as answer,
    ):
        next(answer.chunks)
        connection.drain_response(answer)
        assert connection.remaining_seconds() > BACKSTOP_SECONDS


@pytest.mark.parametrize("answered", [False, True], ids=["before the headers", "in the body"])
def test_silence_is_a_stall(answered: bool) -> None:
    def silent(client: socket.socket) -> None:
        if answered:
            send_head(client)
            send_chunk(client, b"hel")
        hang_forever(client)

    with (
        start_server(silent) as server,
        closing(HttpConnection(stall_seconds=0.2)) as connection,
        pytest.raises(ProviderError) as caught,
    ):
        fetch_body(connection, server.url)
    assert (caught.value.code, caught.value.retryable) == ("provider_stalled", True)
    assert caught.value.message == "Peer request failed: it sent nothing for 0.2 s."


def test_a_trickle_cannot_outlast_the_total_time() -> None:
    def trickle(client: socket.socket) -> None:
        send_head(client)
        while True:
            send_chunk(client, b".")
            time.sleep(0.02)

    with (
        start_server(trickle) as server,
        closing(HttpConnection(total_seconds=0.3)) as connection,
        pytest.raises(ProviderError) as caught,
    ):
        fetch_body(connection, server.url)
    assert caught.value.code == "provider_stalled"
    assert caught.value.message == "Peer request failed: no whole answer within 0.3 s."


def test_a_closed_port_is_unreachable(connection: HttpConnection) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
    with pytest.raises(ProviderError) as caught:
        fetch_body(connection, url)
    assert (caught.value.code, caught.value.retryable) == ("provider_unreachable", True)


@pytest.mark.parametrize("url", ["ftp://127.0.0.1/", "http://[::1", "nowhere"])
def test_an_invalid_address_is_not_retried(connection: HttpConnection, url: str) -> None:
    with pytest.raises(ProviderError) as caught:
        fetch_body(connection, url)
    assert (caught.value.code, caught.value.retryable) == ("provider_request", False)


def test_a_connection_lost_in_mid_stream_is_reported(connection: HttpConnection) -> None:
    def drop(client: socket.socket) -> None:
        send_head(client)
        send_chunk(client, b"hel")
        client.shutdown(socket.SHUT_RDWR)

    with start_server(drop) as server, pytest.raises(ProviderError) as caught:
        fetch_body(connection, server.url)
    assert (caught.value.code, caught.value.retryable) == ("provider_unreachable", True)


# Hanging up


class AbortingCaller:
    """Abort a connection from another thread."""

    def __init__(self, connection: HttpConnection, when: Callable[[], object]) -> None:
        self.stopped = False
        self._connection = connection
        self._when = when
        self._thread = threading.Thread(target=self._hang_up)
        self._thread.start()

    def _hang_up(self) -> None:
        self._when()
        self.stopped = self._connection.abort()

    def has_aborted(self) -> bool:
        """Return whether the abort has stopped a call."""
        self._thread.join()
        return self.stopped


def random_moment() -> None:
    time.sleep(0.1)


def check_abort(connection: HttpConnection, server: RawServer) -> ProviderError:
    """Send a request, abort when the server has it, and check how it ends."""
    caller = AbortingCaller(connection, lambda: server.ready.acquire(timeout=BACKSTOP_SECONDS))
    with pytest.raises(ProviderError) as caught:
        fetch_body(connection, server.url)
    assert caller.has_aborted()
    return caught.value


@pytest.mark.parametrize("moment", ["before the headers", "in the body", "in a body without an end"])
def test_an_abort_ends_the_request_and_closes_the_socket(connection: HttpConnection, moment: str) -> None:
    def slow(client: socket.socket) -> None:
        if moment == "in the body":
            send_head(client)
            send_chunk(client, b"hel")
        if moment == "in a body without an end":
            client.sendall(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nhel")
        server.ready.release()
        server.over.wait()

    with start_server(slow) as server:
        error = check_abort(connection, server)
        assert (error.code, error.retryable) == ("provider_closed", False)
        assert wait_until_closed(server.accepted[0])


def test_after_an_abort_the_connection_serves_the_next_request(connection: HttpConnection) -> None:
    def slow(client: socket.socket) -> None:
        server.ready.release()
        hang_forever(client)

    with start_server(slow) as server:
        check_abort(connection, server)
    with start_server(answer_completely) as server:
        assert fetch_body(connection, server.url) == b"hello"


def test_an_abort_outside_of_a_call_stops_nothing_and_not_the_next_call_either(connection: HttpConnection) -> None:
    assert connection.abort() is False
    with start_server(answer_completely) as server:
        assert fetch_body(connection, server.url) == b"hello"
        assert connection.abort() is False
        assert fetch_body(connection, server.url) == b"hello"


def test_an_abort_ends_an_attempt_to_connect(connection: HttpConnection) -> None:
    """With a full backlog, an attempt to connect neither succeeds nor fails."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        fillers = [socket.socket() for _ in range(4)]
        for filler in fillers:
            filler.setblocking(False)
            filler.connect_ex(listener.getsockname())
        caller = AbortingCaller(connection, random_moment)
        with pytest.raises(ProviderError) as caught:
            fetch_body(connection, f"http://127.0.0.1:{listener.getsockname()[1]}/")
        assert caught.value.code == "provider_closed"
        assert caller.has_aborted()
        for filler in fillers:
            filler.close()


def test_an_abort_ends_a_tls_handshake(connection: HttpConnection) -> None:
    def deaf(client: socket.socket) -> None:
        raise AssertionError("no request can be read from a client hello")

    with start_server(deaf) as server:
        caller = AbortingCaller(connection, random_moment)
        with pytest.raises(ProviderError) as caught:
            fetch_body(connection, server.url.replace("http:", "https:"))
        assert caught.value.code == "provider_closed"
        assert caller.has_aborted()


def test_an_abort_ends_a_delay_between_two_attempts(connection: HttpConnection) -> None:
    with connection.call_scope():
        caller = AbortingCaller(connection, random_moment)
        with pytest.raises(ProviderError) as caught:
            connection.sleep(30)
    assert caught.value.code == "provider_closed"
    assert caller.has_aborted()


def test_an_abort_between_two_requests_of_a_call_stops_the_second(connection: HttpConnection) -> None:
    with start_server(answer_completely) as server, connection.call_scope():
        assert fetch_body(connection, server.url) == b"hello"
        assert connection.abort() is True
        with pytest.raises(ProviderError) as caught:
            fetch_body(connection, server.url)
    assert caught.value.code == "provider_closed"


@pytest.mark.parametrize(("is_own_server", "expected"), [(True, b"x-fermata-request: t1.2.1"), (False, b"")])
def test_only_servers_of_the_deployment_are_told_which_request_it_is(is_own_server: bool, expected: bytes) -> None:
    received: list[bytes] = []

    def respond(client: socket.socket, head: bytes) -> None:
        received.append(head)
        client.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        origin = f"http://127.0.0.1:{listener.getsockname()[1]}"

        def serve() -> None:
            client, _ = listener.accept()
            with client:
                respond(client, client.recv(65536))

        thread = threading.Thread(target=serve)
        thread.start()
        connection = HttpConnection(named_origins=[origin] if is_own_server else ["http://127.0.0.1"])
        with closing(connection), connection.post("Peer", f"{origin}/v1/messages", {}, b"", request_name="t1.2.1"):
            pass
        thread.join(BACKSTOP_SECONDS)
    names = [line.lower() for line in received[0].split(b"\r\n") if line.lower().startswith(b"x-fermata")]
    assert b"".join(names) == expected
