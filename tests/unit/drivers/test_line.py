"""The line on real sockets: time-outs, hang-ups at every moment, and reuse."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

import pytest

from fermata.drivers.cord import CONNECT_SLICE
from fermata.drivers.line import Line
from fermata.words.errors import ProviderError

SOON = 1.0
"""Seconds within which a hang-up has to be felt."""


class Peer:
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


def closed(connection: socket.socket) -> bool:
    """Whether the other side has ended the connection."""
    connection.settimeout(SOON)
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True
    except TimeoutError:
        return False


@contextmanager
def peer(behave: Callable[[socket.socket], None]) -> Iterator[Peer]:
    server = Peer(behave)
    try:
        yield server
    finally:
        server.close()


def heads(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")


def chunk(connection: socket.socket, data: bytes) -> None:
    connection.sendall(f"{len(data):x}\r\n".encode() + data + b"\r\n")


def whole(connection: socket.socket) -> None:
    heads(connection)
    chunk(connection, b"hello")
    connection.sendall(b"0\r\n\r\n")


def body(line: Line, url: str) -> bytes:
    with line.post("Peer", url, {}, b"{}") as answer:
        return b"".join(answer.chunks)


def wait_for_ever(connection: socket.socket) -> None:
    """Until the test closes the connection."""
    connection.recv(1)


def test_requests_share_one_connection(line: Line) -> None:
    with peer(whole) as server:
        assert [body(line, server.url) for _ in range(3)] == [b"hello"] * 3
        assert len(server.accepted) == 1


def test_after_the_last_word_the_end_is_read_so_that_the_connection_can_be_used_again(line: Line) -> None:
    with peer(whole) as server:
        for _ in range(2):
            with line.post("Peer", server.url, {}, b"{}") as answer:
                next(answer.chunks)
                line.drain(answer)
        assert len(server.accepted) == 1


def test_a_response_that_does_not_end_does_not_hold_up_its_reader(line: Line) -> None:
    def endless(connection: socket.socket) -> None:
        heads(connection)
        chunk(connection, b"hello")
        wait_for_ever(connection)

    with peer(endless) as server, line.post("Peer", server.url, {}, b"{}") as answer:
        next(answer.chunks)
        began = time.monotonic()
        line.drain(answer)
        assert time.monotonic() - began < SOON


@pytest.mark.parametrize("answered", [False, True], ids=["before the headers", "in the body"])
def test_silence_is_a_stall(answered: bool) -> None:
    def silent(connection: socket.socket) -> None:
        if answered:
            heads(connection)
            chunk(connection, b"hel")
        wait_for_ever(connection)

    with peer(silent) as server, closing(Line(stall_seconds=0.2)) as line, pytest.raises(ProviderError) as caught:
        body(line, server.url)
    assert (caught.value.code, caught.value.retryable) == ("provider_stalled", True)
    assert caught.value.message == "Peer request failed: it sent nothing for 0.2 s."


def test_a_trickle_cannot_outlast_the_whole_call() -> None:
    def trickle(connection: socket.socket) -> None:
        heads(connection)
        while True:
            chunk(connection, b".")
            time.sleep(0.02)

    with peer(trickle) as server, closing(Line(total_seconds=0.3)) as line, pytest.raises(ProviderError) as caught:
        body(line, server.url)
    assert caught.value.code == "provider_stalled"
    assert caught.value.message == "Peer request failed: no whole answer within 0.3 s."


def test_nobody_there_is_unreachable(line: Line) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
    with pytest.raises(ProviderError) as caught:
        body(line, url)
    assert (caught.value.code, caught.value.retryable) == ("provider_unreachable", True)


@pytest.mark.parametrize("url", ["ftp://127.0.0.1/", "http://[::1", "nowhere"])
def test_an_address_that_is_none_is_not_tried_again(line: Line, url: str) -> None:
    with pytest.raises(ProviderError) as caught:
        body(line, url)
    assert (caught.value.code, caught.value.retryable) == ("provider_request", False)


def test_a_connection_lost_in_mid_stream_is_told_as_such(line: Line) -> None:
    def drop(connection: socket.socket) -> None:
        heads(connection)
        chunk(connection, b"hel")
        connection.shutdown(socket.SHUT_RDWR)

    with peer(drop) as server, pytest.raises(ProviderError) as caught:
        body(line, server.url)
    assert (caught.value.code, caught.value.retryable) == ("provider_unreachable", True)


# Hanging up


class Caller:
    """Hangs up from another thread, when told to, and knows when that was."""

    def __init__(self, line: Line, when: Callable[[], object]) -> None:
        self.stopped = False
        self._line, self._when, self._at = line, when, 0.0
        self._thread = threading.Thread(target=self._hang_up)
        self._thread.start()

    def _hang_up(self) -> None:
        self._when()
        self._at = time.monotonic()
        self.stopped = self._line.hang_up()

    def felt_within(self, seconds: float) -> bool:
        now = time.monotonic()
        self._thread.join()
        return self.stopped and now - self._at < seconds


def a_moment() -> None:
    time.sleep(0.1)


def hangs_up(line: Line, server: Peer) -> ProviderError:
    """Make a request, hang up when the peer has it, and see how it ends."""
    caller = Caller(line, lambda: server.ready.acquire(timeout=5))
    with pytest.raises(ProviderError) as caught:
        body(line, server.url)
    assert caller.felt_within(SOON)
    return caught.value


@pytest.mark.parametrize("moment", ["before the headers", "in the body", "in a body without an end"])
def test_a_hang_up_ends_the_request_and_closes_the_socket(line: Line, moment: str) -> None:
    def slow(connection: socket.socket) -> None:
        if moment == "in the body":
            heads(connection)
            chunk(connection, b"hel")
        if moment == "in a body without an end":
            connection.sendall(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nhel")
        server.ready.release()
        server.over.wait()

    with peer(slow) as server:
        error = hangs_up(line, server)
        assert (error.code, error.retryable) == ("provider_closed", False)
        assert closed(server.accepted[0])


def test_after_a_hang_up_the_line_serves_the_next_request(line: Line) -> None:
    def slow(connection: socket.socket) -> None:
        server.ready.release()
        wait_for_ever(connection)

    with peer(slow) as server:
        hangs_up(line, server)
    with peer(whole) as server:
        assert body(line, server.url) == b"hello"


def test_a_hang_up_without_a_call_stops_nothing_and_does_not_touch_the_next_one(line: Line) -> None:
    assert line.hang_up() is False
    with peer(whole) as server:
        assert body(line, server.url) == b"hello"
        assert line.hang_up() is False
        assert body(line, server.url) == b"hello"


def test_a_hang_up_ends_an_attempt_to_connect(line: Line) -> None:
    """A full backlog drops what knocks: connecting neither succeeds nor fails."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        fillers = [socket.socket() for _ in range(4)]
        for filler in fillers:
            filler.setblocking(False)
            filler.connect_ex(listener.getsockname())
        caller = Caller(line, a_moment)
        with pytest.raises(ProviderError) as caught:
            body(line, f"http://127.0.0.1:{listener.getsockname()[1]}/")
        assert caught.value.code == "provider_closed"
        assert caller.felt_within(CONNECT_SLICE + SOON)
        for filler in fillers:
            filler.close()


def test_a_hang_up_in_the_middle_of_the_tls_handshake_is_felt_too(line: Line) -> None:
    def deaf(connection: socket.socket) -> None:
        raise AssertionError("no request can be read from a client hello")

    with peer(deaf) as server:
        caller = Caller(line, a_moment)
        with pytest.raises(ProviderError) as caught:
            body(line, server.url.replace("http:", "https:"))
        assert caught.value.code == "provider_closed"
        assert caller.felt_within(SOON)


def test_a_hang_up_ends_a_wait_between_two_tries(line: Line) -> None:
    with line.call():
        caller = Caller(line, a_moment)
        with pytest.raises(ProviderError) as caught:
            line.wait(30)
    assert caught.value.code == "provider_closed"
    assert caller.felt_within(SOON)


def test_a_hang_up_between_two_requests_of_a_call_stops_the_second(line: Line) -> None:
    with peer(whole) as server, line.call():
        assert body(line, server.url) == b"hello"
        assert line.hang_up() is True
        with pytest.raises(ProviderError) as caught:
            body(line, server.url)
    assert caught.value.code == "provider_closed"
