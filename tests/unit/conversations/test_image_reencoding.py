"""Pictures are drawn anew: whatever comes, what goes on is a small upright JPEG with nothing in it but pixels."""

import contextlib
import io
import struct
import zlib
from pathlib import Path
from typing import Any

import pytest
from PIL import Image, ImageDraw, PngImagePlugin

from fermata.conversations import image_reencoding
from fermata.conversations.image_reencoding import (
    ImageTooLargeError,
    InvalidImageError,
    accept_unchanged,
    check_image_header,
    reencode_as_jpeg,
)
from fermata.domain.image_header import MAX_IMAGE_EDGE_PIXELS, MAX_INPUT_IMAGE_PIXELS, MAX_STORED_IMAGE_PIXELS
from tests.images import make_gif_header, make_image, make_jpeg_header, make_png_header, make_webp_header, open_image
from tests.peak_memory import measure_peak_megabytes

KINDS = ("JPEG", "PNG", "GIF", "WEBP")
ORIENTATION, GPS = 0x0112, 0x8825


def reencode_and_open(raw: bytes) -> Image.Image:
    data, picture = reencode_as_jpeg(raw)
    image = open_image(data)
    assert (picture.mime_type, image.format) == ("image/jpeg", "JPEG")
    assert image.size == (picture.width, picture.height)
    assert len(data) <= image_reencoding.MAX_JPEG_BYTES
    image.load()
    return image


def read_colour(image: Image.Image, x: int, y: int) -> str:
    red, green, blue = image.convert("RGB").getpixel((x, y))  # type: ignore[misc]  # RGB has three
    strongest = max(red, green, blue)
    if min(red, green, blue) > 200:
        return "white"
    return "red" if red == strongest else "green" if green == strongest else "blue"


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_becomes_a_jpeg_that_shows_the_same(kind: str) -> None:
    image = reencode_and_open(make_image(60, 40, kind))
    assert image.size == (60, 40)
    assert (read_colour(image, 5, 20), read_colour(image, 55, 20)) == ("red", "blue")


@pytest.mark.parametrize("mode", ["1", "L", "P", "CMYK", "RGBA", "LA", "I;16"])
def test_every_way_to_hold_colours_is_understood(mode: str) -> None:
    kind = "JPEG" if mode == "CMYK" else "PNG"
    target = io.BytesIO()
    Image.new("RGB", (30, 20), "white").convert("L" if mode == "I;16" else "RGB").convert(mode).save(target, kind)
    assert reencode_and_open(target.getvalue()).size == (30, 20)


def test_sixteen_bits_of_grey_stay_grey() -> None:
    target = io.BytesIO()
    Image.new("I;16", (10, 10), 30_000).save(target, "PNG")
    assert reencode_and_open(target.getvalue()).getpixel((5, 5)) == (117, 117, 117)


@pytest.mark.parametrize("kind", ["PNG", "WEBP"])
@pytest.mark.parametrize("size", [(40, 300), (2000, 1000)])
def test_what_is_transparent_shows_white(kind: str, size: tuple[int, int]) -> None:
    image = Image.new("RGBA", size, (0, 0, 0, 0))
    ImageDraw.Draw(image).rectangle((0, 0, size[0] // 2, size[1]), fill="red")
    target = io.BytesIO()
    image.save(target, kind)
    shown = reencode_and_open(target.getvalue())
    width, height = shown.size
    assert (read_colour(shown, width // 4, height - 5), read_colour(shown, width - 5, height - 5)) == ("red", "white")


@pytest.mark.parametrize(
    ("size", "becomes"),
    [((4000, 3000), (1414, 1060)), ((3000, 10), (1568, 5)), ((10, 12_000), (1, 1568)), ((1568, 900), (1568, 900))],
)
def test_a_large_picture_becomes_one_that_no_provider_shrinks(size: tuple[int, int], becomes: tuple[int, int]) -> None:
    image = reencode_and_open(make_image(*size))
    assert image.size == becomes
    assert max(image.size) <= MAX_IMAGE_EDGE_PIXELS
    assert image.width * image.height <= MAX_STORED_IMAGE_PIXELS


def test_even_noise_becomes_small_enough() -> None:
    noise = Image.effect_noise((1224, 1224), 200)
    target = io.BytesIO()
    Image.merge("RGB", (noise, noise.rotate(90), noise.rotate(180))).save(target, "PNG")
    assert reencode_and_open(target.getvalue()).size == (1224, 1224)


@pytest.mark.parametrize(("orientation", "size"), [(1, (60, 40)), (3, (60, 40)), (6, (40, 60)), (8, (40, 60))])
def test_it_stands_as_the_camera_was_held(orientation: int, size: tuple[int, int]) -> None:
    exif = Image.Exif()
    exif[ORIENTATION] = orientation
    assert reencode_and_open(make_image(60, 40, exif=exif)).size == size
    assert reencode_and_open(make_image(6000 // 2, 4000 // 2, exif=exif)).size == (
        (1500, 1000) if size == (60, 40) else (1000, 1500)
    )


def test_where_a_photograph_was_taken_is_told_to_nobody() -> None:
    exif = Image.Exif()
    exif[ORIENTATION] = 6
    exif.get_ifd(GPS)[2] = (52.0, 30.0, 0.0)
    exif[0x010E] = "my kitchen"
    taken = make_image(60, 40, exif=exif, comment=b"my kitchen", icc_profile=b"my kitchen", xmp=b"<x>my kitchen</x>")
    assert taken.count(b"my kitchen") >= 3
    data, _ = reencode_as_jpeg(taken)
    assert b"my kitchen" not in data
    assert not open_image(data).getexif()
    assert set(open_image(data).info) <= {"jfif", "jfif_version", "jfif_unit", "jfif_density"}


@pytest.mark.filterwarnings("ignore:Corrupt EXIF data")
@pytest.mark.parametrize(
    "broken", [b"Exif\x00\x00" + b"MM\x00*" + b"\xff" * 40, b"Exif\x00\x00", b"Exif\x00\x00II*\x00"]
)
def test_metadata_that_cannot_be_read_does_no_harm(broken: bytes) -> None:
    assert reencode_and_open(make_image(60, 40, exif=broken)).size == (60, 40)


@pytest.mark.parametrize("kind", ["GIF", "WEBP", "PNG"])
def test_of_a_moving_picture_the_first_frame_is_shown(kind: str) -> None:
    frames = [Image.new("RGB", (20, 20), name) for name in ("green", "red", "blue")]
    target = io.BytesIO()
    frames[0].save(target, kind, save_all=True, append_images=frames[1:], duration=100)
    assert read_colour(reencode_and_open(target.getvalue()), 10, 10) == "green"


def make_png_chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def make_png_bomb(width: int, height: int) -> bytes:
    """A few kilobytes that unfold to as many pixels as they say."""
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    rows = zlib.compress(bytes((width + 1) * min(height, 3000)), 9)
    return (
        b"\x89PNG\r\n\x1a\n"
        + make_png_chunk(b"IHDR", header)
        + make_png_chunk(b"IDAT", rows)
        + make_png_chunk(b"IEND", b"")
    )


def make_gif_bomb() -> bytes:
    """A small screen, and a frame of 65,000 by 65,000 on it."""
    screen = b"GIF89a" + struct.pack("<HH", 10, 10) + b"\x80\x00\x00" + bytes(6)
    frame = b"\x2c" + struct.pack("<HHHH", 0, 0, 65_000, 65_000) + b"\x00"
    return screen + frame + b"\x02\x02\x44\x01\x00\x3b"


@pytest.mark.parametrize(
    "bomb",
    [
        make_png_bomb(30_000, 30_000),
        make_png_bomb(3000, 3000),
        make_jpeg_header(65_000, 65_000),
        make_gif_header(60_000, 60_000),
        make_webp_header(16_000, 16_000),
    ],
)
def test_a_picture_that_unfolds_to_more_than_fits_is_not_opened(bomb: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(image_reencoding, "_decode", None)
    with pytest.raises(ImageTooLargeError, match=r"pixels, and of image/\w+ at most [\d,]+ in all are taken"):
        reencode_as_jpeg(bomb)


def test_a_picture_that_is_larger_inside_than_it_says_is_refused() -> None:
    with pytest.raises(InvalidImageError):
        reencode_as_jpeg(make_gif_bomb())


def test_text_that_unfolds_without_end_is_refused() -> None:
    note = PngImagePlugin.PngInfo()
    note.add_text("comment", "x" * 70_000_000, zip=True)
    target = io.BytesIO()
    Image.new("RGB", (10, 10)).save(target, "PNG", pnginfo=note)
    assert len(target.getvalue()) < 200_000
    with pytest.raises(InvalidImageError):
        reencode_as_jpeg(target.getvalue())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("share", [0.3, 0.6, 0.9])
def test_a_picture_that_was_cut_off_is_refused(kind: str, share: float) -> None:
    noise = Image.effect_noise((80, 80), 100).convert("RGB")
    target = io.BytesIO()
    noise.save(target, kind)
    whole = target.getvalue()
    assert reencode_and_open(whole).size == (80, 80)
    with pytest.raises(InvalidImageError):
        reencode_as_jpeg(whole[: int(len(whole) * share)])


@pytest.mark.parametrize(
    "fake",
    [
        make_jpeg_header(),
        make_png_header(),
        make_gif_header(),
        make_webp_header(),
        b"\xff\xd8\xff",
        b"\x89PNG\r\n\x1a\n",
        b"GIF89a",
    ],
)
def test_what_only_begins_like_a_picture_is_refused(fake: bytes) -> None:
    with pytest.raises(InvalidImageError):
        reencode_as_jpeg(fake)


@pytest.mark.parametrize(
    "other",
    [
        b"",
        b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>",
        b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n",
        b"%PDF-1.7",
        b"BM" + bytes(60),
        b"II*\x00" + bytes(60),
        b"\x00\x00\x01\x00" + bytes(60),
        b"\x00\x00\x00\x20ftypavif" + bytes(60),
    ],
)
def test_no_other_kind_is_even_tried(other: bytes) -> None:
    with pytest.raises(InvalidImageError, match="is none of image/jpeg"):
        check_image_header(other)


@pytest.mark.parametrize("kind", KINDS)
def test_what_hides_behind_a_picture_stays_behind(kind: str) -> None:
    hidden = b"<html><script>alert(1)</script></html>PK\x03\x04"
    data, _ = reencode_as_jpeg(make_image(20, 20, kind) + hidden)
    assert b"script" not in data
    assert b"PK\x03\x04" not in data


@pytest.mark.filterwarnings("ignore")  # the library's about what it met
@pytest.mark.parametrize("kind", KINDS)
def test_whatever_is_done_to_its_bytes_it_is_drawn_or_refused(kind: str) -> None:
    """Every byte of a small picture turned over, one at a time."""
    whole = make_image(9, 7, kind)
    for at in range(len(whole)):
        bent = whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :]
        with contextlib.suppress(InvalidImageError):
            reencode_and_open(bent)


class TestAsItIs:
    @pytest.mark.parametrize("kind", ["PNG", "JPEG"])
    def test_a_sound_small_picture_may_go_on_as_it_came(self, kind: str) -> None:
        assert accept_unchanged(make_image(60, 40, kind)) == check_image_header(make_image(60, 40, kind))

    @pytest.mark.parametrize(
        "raw", [make_image(60, 40, "GIF"), make_image(60, 40, "WEBP"), make_image(1600, 20, "PNG")]
    )
    def test_others_have_to_be_drawn(self, raw: bytes) -> None:
        assert accept_unchanged(raw) is None

    @pytest.mark.parametrize("raw", [make_png_header(), make_image(60, 40, "PNG")[:-30], make_jpeg_header()])
    def test_a_damaged_one_is_refused(self, raw: bytes) -> None:
        with pytest.raises(InvalidImageError):
            accept_unchanged(raw)


def test_the_limits_name_the_kinds_that_are_taken() -> None:
    for kind in KINDS:
        assert MAX_INPUT_IMAGE_PIXELS[f"image/{kind.lower()}"] >= MAX_STORED_IMAGE_PIXELS


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux tells how much memory was used")
@pytest.mark.parametrize(
    ("kind", "size", "mode", "how"),
    [
        ("JPEG", (4000, 3000), "RGB", {"progressive": True, "quality": 85, "subsampling": 0}),
        ("PNG", (3840, 2160), "RGBA", {"compress_level": 1}),
        ("GIF", (3840, 2160), "P", {}),
        ("WEBP", (2560, 1600), "RGBA", {"method": 0}),
    ],
)
def test_the_largest_that_are_taken_fit_into_a_doors_memory(
    tmp_path: Path, kind: str, size: tuple[int, int], mode: str, how: dict[str, Any]
) -> None:
    """The door that draws them has 208 MB, of which 80 are in use before the first."""
    Image.effect_noise((size[0] // 8, size[1] // 8), 80).resize(size).convert(mode).save(tmp_path / "it", kind, **how)
    before = (
        "from fermata.conversations.image_reencoding import reencode_as_jpeg; import PIL.ImageOps; "
        "raw = open('it', 'rb').read()"
    )
    assert measure_peak_megabytes(before, "reencode_as_jpeg(raw)", tmp_path) < 95
