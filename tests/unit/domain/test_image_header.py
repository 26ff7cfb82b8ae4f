import pytest
from hypothesis import given
from hypothesis import strategies as st

from fermata.domain.image_header import IMAGE_MIME_TYPES, ImageHeader, read_image_header
from tests.images import make_gif_header, make_jpeg_header, make_png_header, make_webp_header

MAKERS = dict(
    zip(IMAGE_MIME_TYPES, (make_jpeg_header, make_png_header, make_gif_header, make_webp_header), strict=True)
)


@pytest.mark.parametrize("kind", IMAGE_MIME_TYPES)
@pytest.mark.parametrize("size", [(1, 1), (1568, 956), (300, 9000)])
def test_an_images_type_and_size_are_read_from_its_header(kind: str, size: tuple[int, int]) -> None:
    assert read_image_header(MAKERS[kind](*size)) == ImageHeader(kind, *size)


@pytest.mark.parametrize("kind", IMAGE_MIME_TYPES)
def test_a_truncated_header_gives_nothing_or_the_right_size(kind: str) -> None:
    data = MAKERS[kind](70, 80)
    headers = {read_image_header(data[:length]) for length in range(len(data))}
    assert headers <= {None, ImageHeader(kind, 70, 80)}
    assert None in headers


def test_the_plain_and_the_lossless_form_of_webp_are_read_too() -> None:
    size = (70).to_bytes(2, "little") + (80).to_bytes(2, "little")
    assert read_image_header(b"RIFF0000WEBPVP8 0000" + bytes(3) + b"\x9d\x01\x2a" + size) == ImageHeader(
        "image/webp", 70, 80
    )
    bits = (69 | 79 << 14).to_bytes(4, "little")
    assert read_image_header(b"RIFF0000WEBPVP8L0000\x2f" + bits) == ImageHeader("image/webp", 70, 80)


def test_a_jpeg_may_have_padding_and_markers_without_a_length_before_its_frame() -> None:
    start, segments = make_jpeg_header(70, 80)[:2], make_jpeg_header(70, 80)[2:]
    assert read_image_header(start + b"\xff" + segments) == ImageHeader("image/jpeg", 70, 80)
    assert read_image_header(start + b"\xff\x01" + segments) == ImageHeader("image/jpeg", 70, 80)
    assert read_image_header(start + b"\x01" + segments) is None


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"<svg xmlns='http://www.w3.org/2000/svg'/>",
        b"\xff\xd8\xff",
        b"GIF89a",
        make_png_header(0, 5),
        b"RIFF0000WAVE",
        b"BM",
    ],
)
def test_other_data_has_no_image_header(data: bytes) -> None:
    assert read_image_header(data) is None


@given(
    st.sampled_from([make_jpeg_header(), make_png_header(), make_gif_header(), make_webp_header()]),
    st.binary(max_size=60),
    st.integers(0, 40),
)
def test_no_bytes_raise_an_exception(start: bytes, noise: bytes, at: int) -> None:
    read_image_header(start[:at] + noise + start[at:])
