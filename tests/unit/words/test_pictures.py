import pytest
from hypothesis import given
from hypothesis import strategies as st

from fermata.words.pictures import MIME_TYPES, Picture, measure
from tests.pictures import gif, jpeg, png, webp

MAKERS = dict(zip(MIME_TYPES, (jpeg, png, gif, webp), strict=True))


@pytest.mark.parametrize("kind", MIME_TYPES)
@pytest.mark.parametrize("size", [(1, 1), (1568, 956), (300, 9000)])
def test_a_pictures_kind_and_size_are_read_from_its_header(kind: str, size: tuple[int, int]) -> None:
    assert measure(MAKERS[kind](*size)) == Picture(kind, *size)


@pytest.mark.parametrize("kind", MIME_TYPES)
def test_a_header_that_breaks_off_says_nothing(kind: str) -> None:
    whole = MAKERS[kind](70, 80)
    found = {measure(whole[:length]) for length in range(len(whole))}
    assert found <= {None, Picture(kind, 70, 80)}
    assert None in found


def test_the_plain_and_the_lossless_form_of_webp_are_read_too() -> None:
    size = (70).to_bytes(2, "little") + (80).to_bytes(2, "little")
    assert measure(b"RIFF0000WEBPVP8 0000" + bytes(3) + b"\x9d\x01\x2a" + size) == Picture("image/webp", 70, 80)
    bits = (69 | 79 << 14).to_bytes(4, "little")
    assert measure(b"RIFF0000WEBPVP8L0000\x2f" + bits) == Picture("image/webp", 70, 80)


def test_a_jpeg_may_have_padding_and_markers_without_a_length_before_its_frame() -> None:
    start, segments = jpeg(70, 80)[:2], jpeg(70, 80)[2:]
    assert measure(start + b"\xff" + segments) == Picture("image/jpeg", 70, 80)
    assert measure(start + b"\xff\x01" + segments) == Picture("image/jpeg", 70, 80)
    assert measure(start + b"\x01" + segments) is None


@pytest.mark.parametrize(
    "data",
    [b"", b"<svg xmlns='http://www.w3.org/2000/svg'/>", b"\xff\xd8\xff", b"GIF89a", png(0, 5), b"RIFF0000WAVE", b"BM"],
)
def test_anything_else_is_no_picture(data: bytes) -> None:
    assert measure(data) is None


@given(st.sampled_from([jpeg(), png(), gif(), webp()]), st.binary(max_size=60), st.integers(0, 40))
def test_no_bytes_whatsoever_make_it_stumble(start: bytes, noise: bytes, at: int) -> None:
    measure(start[:at] + noise + start[at:])
