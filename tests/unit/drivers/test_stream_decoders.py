import pytest
from hypothesis import given
from hypothesis import strategies as st

from fermata.drivers.transport.stream_decoders import NdjsonDecoder, SseDecoder


def fed(*chunks: bytes) -> list[str]:
    frames = SseDecoder()
    return [data for chunk in chunks for data in frames.feed(chunk)]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_lines_may_end_with_crlf_lf_or_cr(end: str) -> None:
    stream = end.join(["event: a", "data: one", "", "data: two", "", ""]).encode()
    assert fed(stream) == ["one", "two"]
    assert fed(*(bytes([byte]) for byte in stream)) == ["one", "two"]


def test_a_crlf_split_between_chunks_does_not_end_an_event_early() -> None:
    stream = [b'data: {"type":"response.completed",\r', b'\ndata: "response":{"status":"completed"}}\r\n\r\n']
    assert fed(*stream) == ['{"type":"response.completed",\n"response":{"status":"completed"}}']


def test_a_line_feed_that_comes_alone_after_a_carriage_return_belongs_to_it() -> None:
    assert fed(b"data: one\r", b"\n", b"\n", b"data: two\n\n") == ["one", "two"]


def test_at_most_one_blank_after_data_is_removed() -> None:
    assert fed(b"data:x\n\n", b"data:  y\n\n", b"data\n\n") == ["x", " y", ""]


def test_comments_names_and_blank_events_are_ignored() -> None:
    assert fed(b": ping\n\nevent: ping\nid: 7\nretry: 10\n\n\n\ndata: x\n\n") == ["x"]


def test_an_unfinished_event_is_not_returned() -> None:
    assert fed(b"data: half") == []
    assert fed(b"data: half\n") == []


def test_a_character_split_anywhere_is_decoded() -> None:
    stream = "data: 那个你好🦀\n\n".encode()
    for at in range(len(stream)):
        assert fed(stream[:at], stream[at:]) == ["那个你好🦀"]


@given(st.lists(st.text(st.characters(exclude_characters="\r\n", codec="utf-8"))), st.data())
def test_any_chunking_gives_the_same_events(texts: list[str], data: st.DataObject) -> None:
    stream = "".join(f"data: {text}\r\n\r\n" for text in texts).encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)))))
    chunks = [stream[start:end] for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    assert fed(*chunks) == texts


@pytest.mark.parametrize("stream", [b"data: one\n\ndata: tw", b"data: one\n\ndata: tw\n"])
def test_the_last_event_needs_no_blank_line(stream: bytes) -> None:
    frames = SseDecoder()
    assert frames.feed(stream) == ["one"]
    assert frames.flush() == ["tw"]
    assert frames.flush() == []


def lines(*chunks: bytes) -> list[str]:
    decoder = NdjsonDecoder()
    return [text for chunk in chunks for text in decoder.feed(chunk)] + decoder.flush()


@given(st.lists(st.text(alphabet="aé🦀", min_size=1), min_size=1), st.data())
def test_lines_are_complete_however_they_are_chunked(texts: list[str], data: st.DataObject) -> None:
    stream = "\n".join(texts).encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=10)))
    assert lines(*(stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True))) == texts
