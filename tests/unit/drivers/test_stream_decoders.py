import pytest
from hypothesis import given
from hypothesis import strategies as st

from fermata.drivers.transport.stream_decoders import NdjsonDecoder, SseDecoder


def fed(*chunks: bytes) -> list[str]:
    frames = SseDecoder()
    return [data for chunk in chunks for data in frames.feed(chunk)]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_lines_may_end_in_any_of_the_three_ways(end: str) -> None:
    stream = end.join(["event: a", "data: one", "", "data: two", "", ""]).encode()
    assert fed(stream) == ["one", "two"]
    assert fed(*(bytes([byte]) for byte in stream)) == ["one", "two"]


def test_a_crlf_cut_in_two_does_not_end_an_event_early() -> None:
    stream = [b'data: {"type":"response.completed",\r', b'\ndata: "response":{"status":"completed"}}\r\n\r\n']
    assert fed(*stream) == ['{"type":"response.completed",\n"response":{"status":"completed"}}']


def test_a_line_feed_that_comes_alone_after_a_carriage_return_belongs_to_it() -> None:
    assert fed(b"data: one\r", b"\n", b"\n", b"data: two\n\n") == ["one", "two"]


def test_the_blank_after_data_may_be_missing_and_only_one_is_taken() -> None:
    assert fed(b"data:x\n\n", b"data:  y\n\n", b"data\n\n") == ["x", " y", ""]


def test_comments_names_and_blank_events_say_nothing() -> None:
    assert fed(b": ping\n\nevent: ping\nid: 7\nretry: 10\n\n\n\ndata: x\n\n") == ["x"]


def test_an_event_that_never_ended_is_no_event() -> None:
    assert fed(b"data: half") == []
    assert fed(b"data: half\n") == []


def test_a_character_cut_anywhere_comes_out_whole() -> None:
    stream = "data: 那个你好🦀\n\n".encode()
    for at in range(len(stream)):
        assert fed(stream[:at], stream[at:]) == ["那个你好🦀"]


@given(st.lists(st.text(st.characters(exclude_characters="\r\n", codec="utf-8"))), st.data())
def test_any_chunking_gives_the_same_events(said: list[str], data: st.DataObject) -> None:
    stream = "".join(f"data: {one}\r\n\r\n" for one in said).encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)))))
    chunks = [stream[start:end] for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    assert fed(*chunks) == said


@pytest.mark.parametrize("stream", [b"data: one\n\ndata: tw", b"data: one\n\ndata: tw\n"])
def test_what_stands_without_its_blank_line_at_the_end_is_not_lost(stream: bytes) -> None:
    frames = SseDecoder()
    assert frames.feed(stream) == ["one"]
    assert frames.flush() == ["tw"]
    assert frames.flush() == []


def lines(*chunks: bytes) -> list[str]:
    found = NdjsonDecoder()
    return [text for chunk in chunks for text in found.feed(chunk)] + found.flush()


@given(st.lists(st.text(alphabet="aé🦀", min_size=1), min_size=1), st.data())
def test_lines_come_whole_however_they_are_cut(texts: list[str], data: st.DataObject) -> None:
    stream = "\n".join(texts).encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=10)))
    assert lines(*(stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True))) == texts
