"""The line on real sockets: time-outs, hang-ups at every moment, and reuse."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

import pytest

from fermata.domain.errors import ProviderError
from fermata.drivers.transport.cancellation import CONNECT_ATTEMPT_SECONDS
from fermata.drivers.transport.connection import ProviderConnection

MAX_ABORT_SECONDS = 1.0
"""Seconds within which a hang-up has to be felt."""


class RawServer:
    """A server of one's own that does what each test needs with the raw connection."""

    def __init__(self, behave: Callable[[socket.socket], None]) -> None:
        self.accepted: list[socket.socket] = []
        self.ready = threading.Semaphore(0)
        """Released by a behaviour when it has the request in hand."""
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
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.accepted.append(connection)
            threading.Thread(target=self._talk, args=(connection,), daemon=True).start()

    def _talk(self, connection: socket.socket) -> None:
        try:
            while read_request(connection):
                self._behave(connection)
        except OSError:
            pass

    def close(self) -> None:
        self.over.set()
        self._listener.close()
        for connection in self.accepted:
            connection.close()


def read_request(connection: socket.socket) -> bool:
    """Read one request, body and all; False when there is none any more."""
    data = b""
    while not data.endswith(b"\r\n\r\n{}"):
        more = connection.recv(65536)
        if not more:
            return False
        data += more
    return True


def wait_until_closed(connection: socket.socket) -> bool:
    """Whether the other side has ended the connection."""
    connection.settimeout(MAX_ABORT_SECONDS)
    try:
        return connection.recv(1) == b""
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


def send_head(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")


def send_chunk(connection: socket.socket, data: bytes) -> None:
    connection.sendall(f"{len(data):x}\r\n".encode() + data + b"\r\n")


def answer_completely(connection: socket.socket) -> None:
    send_head(connection)
    send_chunk(connection, b"hello")
    connection.sendall(b"0\r\n\r\n")


def fetch_body(line: ProviderConnection, url: str) -> bytes:
    with line.post("Peer", url, {}, b"{}") as answer:
        return b"".join(answer.chunks)


def hang_forever(connection: socket.socket) -> None:
    """Until the test closes the connection."""
    connection.recv(1)


def test_requests_share_one_connection(line: ProviderConnection) -> None:
    with start_server(answer_completely) as server:
        assert [fetch_body(line, server.url) for _ in range(3)] == [b"hello"] * 3
        assert len(server.accepted) == 1


def test_after_the_last_word_the_end_is_read_so_that_the_connection_can_be_used_again(line: ProviderConnection) -> None:
    with start_server(answer_completely) as server:
        for _ in range(2):
            with line.post("Peer", server.url, {}, b"{}") as answer:
                next(answer.chunks)
                line.drain_response(answer)
        assert len(server.accepted) == 1


def test_a_response_that_does_not_end_does_not_hold_up_its_reader(line: ProviderConnection) -> None:
    def endless(connection: socket.socket) -> None:
        send_head(connection)
        send_chunk(connection, b"hello")
        hang_forever(connection)

    with start_server(endless) as server, line.post("Peer", server.url, {}, b"{}") as answer:
        next(answer.chunks)
        began = time.monotonic()
        line.drain_response(answer)
        assert time.monotonic() - began < MAX_ABORT_SECONDS


@pytest.mark.parametrize("answered", [False, True], ids=["before the headers", "in the body"])
def test_silence_is_a_stall(answered: bool) -> None:
    def silent(connection: socket.socket) -> None:
        if answered:
            send_head(connection)
            send_chunk(connection, b"hel")
        hang_forever(connection)

    with (
        start_server(silent) as server,
        closing(ProviderConnection(stall_seconds=0.2)) as line,
        pytest.raises(ProviderError) as caught,
    ):
        fetch_body(line, server.url)
    assert (caught.value.code, caught.value.retryable) == ("provider_stalled", True)
    assert caught.value.message == "Peer request failed: it sent nothing for 0.2 s."


def test_a_trickle_cannot_outlast_the_whole_call() -> None:
    def trickle(connection: socket.socket) -> None:
        send_head(connection)
        while True:
            send_chunk(connection, b".")
            time.sleep(0.02)

    with (
        start_server(trickle) as server,
        closing(ProviderConnection(total_seconds=0.3)) as line,
        pytest.raises(ProviderError) as caught,
    ):
        fetch_body(line, server.url)
    assert caught.value.code == "provider_stalled"
    assert caught.value.message == "Peer request failed: no whole answer within 0.3 s."


def test_nobody_there_is_unreachable(line: ProviderConnection) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
    with pytest.raises(ProviderError) as caught:
        fetch_body(line, url)
    assert (caught.value.code, caught.value.retryable) == ("provider_unreachable", True)


@pytest.mark.parametrize("url", ["ftp://127.0.0.1/", "http://[::1", "nowhere"])
def test_an_address_that_is_none_is_not_tried_again(line: ProviderConnection, url: str) -> None:
    with pytest.raises(ProviderError) as caught:
        fetch_body(line, url)
    assert (caught.value.code, caught.value.retryable) == ("provider_request", False)


def test_a_connection_lost_in_mid_stream_is_told_as_such(line: ProviderConnection) -> None:
    def drop(connection: socket.socket) -> None:
        send_head(connection)
        send_chunk(connection, b"hel")
        connection.shutdown(socket.SHUT_RDWR)

    with start_server(drop) as server, pytest.raises(ProviderError) as caught:
        fetch_body(line, server.url)
    assert (caught.value.code, caught.value.retryable) == ("provider_unreachable", True)


# Hanging up


class AbortingCaller:
    """Hangs up from another thread, when told to, and knows when that was."""

    def __init__(self, line: ProviderConnection, when: Callable[[], object]) -> None:
        self.stopped = False
        self._line, self._when, self._at = line, when, 0.0
        self._thread = threading.Thread(target=self._hang_up)
        self._thread.start()

    def _hang_up(self) -> None:
        self._when()
        self._at = time.monotonic()
        self.stopped = self._line.abort()

    def get_abort_seconds(self, seconds: float) -> bool:
        now = time.monotonic()
        self._thread.join()
        return self.stopped and now - self._at < seconds


def random_moment() -> None:
    time.sleep(0.1)


def check_abort(line: ProviderConnection, server: RawServer) -> ProviderError:
    """Make a request, hang up when the peer has it, and see how it ends."""
    caller = AbortingCaller(line, lambda: server.ready.acquire(timeout=5))
    with pytest.raises(ProviderError) as caught:
        fetch_body(line, server.url)
    assert caller.get_abort_seconds(MAX_ABORT_SECONDS)
    return caught.value


@pytest.mark.parametrize("moment", ["before the headers", "in the body", "in a body without an end"])
def test_a_hang_up_ends_the_request_and_closes_the_socket(line: ProviderConnection, moment: str) -> None:
    def slow(connection: socket.socket) -> None:
        if moment == "in the body":
            send_head(connection)
            send_chunk(connection, b"hel")
        if moment == "in a body without an end":
            connection.sendall(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nhel")
        server.ready.release()
        server.over.wait()

    with start_server(slow) as server:
        error = check_abort(line, server)
        assert (error.code, error.retryable) == ("provider_closed", False)
        assert wait_until_closed(server.accepted[0])


def test_after_a_hang_up_the_line_serves_the_next_request(line: ProviderConnection) -> None:
    def slow(connection: socket.socket) -> None:
        server.ready.release()
        hang_forever(connection)

    with start_server(slow) as server:
        check_abort(line, server)
    with start_server(answer_completely) as server:
        assert fetch_body(line, server.url) == b"hello"


def test_a_hang_up_without_a_call_stops_nothing_and_does_not_touch_the_next_one(line: ProviderConnection) -> None:
    assert line.abort() is False
    with start_server(answer_completely) as server:
        assert fetch_body(line, server.url) == b"hello"
        assert line.abort() is False
        assert fetch_body(line, server.url) == b"hello"


def test_a_hang_up_ends_an_attempt_to_connect(line: ProviderConnection) -> None:
    """A full backlog drops what knocks: connecting neither succeeds nor fails."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        fillers = [socket.socket() for _ in range(4)]
        for filler in fillers:
            filler.setblocking(False)
            filler.connect_ex(listener.getsockname())
        caller = AbortingCaller(line, random_moment)
        with pytest.raises(ProviderError) as caught:
            fetch_body(line, f"http://127.0.0.1:{listener.getsockname()[1]}/")
        assert caught.value.code == "provider_closed"
        assert caller.get_abort_seconds(CONNECT_ATTEMPT_SECONDS + MAX_ABORT_SECONDS)
        for filler in fillers:
            filler.close()


def test_a_hang_up_in_the_middle_of_the_tls_handshake_is_felt_too(line: ProviderConnection) -> None:
    def deaf(connection: socket.socket) -> None:
        raise AssertionError("no request can be read from a client hello")

    with start_server(deaf) as server:
        caller = AbortingCaller(line, random_moment)
        with pytest.raises(ProviderError) as caught:
            fetch_body(line, server.url.replace("http:", "https:"))
        assert caught.value.code == "provider_closed"
        assert caller.get_abort_seconds(MAX_ABORT_SECONDS)


def test_a_hang_up_ends_a_wait_between_two_tries(line: ProviderConnection) -> None:
    with line.call_scope():
        caller = AbortingCaller(line, random_moment)
        with pytest.raises(ProviderError) as caught:
            line.sleep(30)
    assert caught.value.code == "provider_closed"
    assert caller.get_abort_seconds(MAX_ABORT_SECONDS)


def test_a_hang_up_between_two_requests_of_a_call_stops_the_second(line: ProviderConnection) -> None:
    with start_server(answer_completely) as server, line.call_scope():
        assert fetch_body(line, server.url) == b"hello"
        assert line.abort() is True
        with pytest.raises(ProviderError) as caught:
            fetch_body(line, server.url)
    assert caught.value.code == "provider_closed"
