"""Re-encoding: any accepted image becomes a small upright JPEG with nothing in it but pixels."""

import contextlib
import io
import struct
import zlib
from pathlib import Path
from typing import Any

import pytest
from PIL import Image, ImageDraw, PngImagePlugin

from fermata.conversations import image_reencoding
from fermata.conversations.image_reencoding import accept_unchanged, reencode_as_jpeg
from fermata.domain.check_image_header import ImageTooLargeError, InvalidImageError, check_image_header
from fermata.domain.image_header import (
    MAX_IMAGE_EDGE_PIXELS,
    MAX_IMAGE_PARTS,
    MAX_INPUT_IMAGE_PIXELS,
    MAX_JPEG_SCANS,
    MAX_STORED_IMAGE_PIXELS,
)
from tests.images import make_gif_header, make_image, make_jpeg_header, make_png_header, make_webp_header, open_image
from tests.peak_memory import measure_peak_megabytes

KINDS = ("JPEG", "PNG", "GIF", "WEBP")
EXIF_ORIENTATION = 0x0112
EXIF_GPS = 0x8825


def reencode_and_open(raw: bytes) -> Image.Image:
    data, header = reencode_as_jpeg(raw)
    image = open_image(data)
    assert (header.mime_type, image.format) == ("image/jpeg", "JPEG")
    assert image.size == (header.width, header.height)
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
def test_every_kind_becomes_a_jpeg_that_looks_the_same(kind: str) -> None:
    image = reencode_and_open(make_image(60, 40, kind))
    assert image.size == (60, 40)
    assert (read_colour(image, 5, 20), read_colour(image, 55, 20)) == ("red", "blue")


@pytest.mark.parametrize("mode", ["1", "L", "P", "CMYK", "RGBA", "LA", "I;16"])
def test_every_colour_mode_is_accepted(mode: str) -> None:
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
def test_transparency_becomes_white(kind: str, size: tuple[int, int]) -> None:
    image = Image.new("RGBA", size, (0, 0, 0, 0))
    ImageDraw.Draw(image).rectangle((0, 0, size[0] // 2, size[1]), fill="red")
    target = io.BytesIO()
    image.save(target, kind)
    shown = reencode_and_open(target.getvalue())
    width, height = shown.size
    assert (read_colour(shown, width // 4, height - 5), read_colour(shown, width - 5, height - 5)) == ("red", "white")


@pytest.mark.parametrize(
    ("size", "expected"),
    [((4000, 3000), (1414, 1060)), ((3000, 10), (1568, 5)), ((10, 12_000), (1, 1568)), ((1568, 900), (1568, 900))],
)
def test_a_large_image_becomes_one_that_no_provider_shrinks(size: tuple[int, int], expected: tuple[int, int]) -> None:
    image = reencode_and_open(make_image(*size))
    assert image.size == expected
    assert max(image.size) <= MAX_IMAGE_EDGE_PIXELS
    assert image.width * image.height <= MAX_STORED_IMAGE_PIXELS


def test_even_noise_becomes_small_enough() -> None:
    noise = Image.effect_noise((1224, 1224), 200)
    target = io.BytesIO()
    Image.merge("RGB", (noise, noise.rotate(90), noise.rotate(180))).save(target, "PNG")
    assert reencode_and_open(target.getvalue()).size == (1224, 1224)


@pytest.mark.parametrize(("orientation", "size"), [(1, (60, 40)), (3, (60, 40)), (6, (40, 60)), (8, (40, 60))])
def test_the_orientation_of_the_camera_is_applied(orientation: int, size: tuple[int, int]) -> None:
    exif = Image.Exif()
    exif[EXIF_ORIENTATION] = orientation
    assert reencode_and_open(make_image(60, 40, exif=exif)).size == size
    assert reencode_and_open(make_image(6000 // 2, 4000 // 2, exif=exif)).size == (
        (1500, 1000) if size == (60, 40) else (1000, 1500)
    )


def test_metadata_is_removed() -> None:
    exif = Image.Exif()
    exif[EXIF_ORIENTATION] = 6
    exif.get_ifd(EXIF_GPS)[2] = (52.0, 30.0, 0.0)
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
def test_malformed_metadata_does_no_harm(broken: bytes) -> None:
    assert reencode_and_open(make_image(60, 40, exif=broken)).size == (60, 40)


@pytest.mark.parametrize("kind", ["GIF", "WEBP", "PNG"])
def test_the_first_frame_of_an_animation_is_kept(kind: str) -> None:
    frames = [Image.new("RGB", (20, 20), name) for name in ("green", "red", "blue")]
    target = io.BytesIO()
    frames[0].save(target, kind, save_all=True, append_images=frames[1:], duration=100)
    assert read_colour(reencode_and_open(target.getvalue()), 10, 10) == "green"


def make_png_chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def make_png_bomb(width: int, height: int) -> bytes:
    """Return a few kilobytes that decode to as many pixels as the header states."""
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    rows = zlib.compress(bytes((width + 1) * min(height, 3000)), 9)
    return (
        b"\x89PNG\r\n\x1a\n"
        + make_png_chunk(b"IHDR", header)
        + make_png_chunk(b"IDAT", rows)
        + make_png_chunk(b"IEND", b"")
    )


def make_gif_bomb() -> bytes:
    """Return a GIF with a small screen and a frame of 65,000 by 65,000 pixels."""
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
def test_an_image_whose_header_states_too_many_pixels_is_not_decoded(
    bomb: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(image_reencoding, "decode_image", None)
    with pytest.raises(ImageTooLargeError, match=r"pixels, and of image/\w+ at most [\d,]+ in all are taken"):
        reencode_as_jpeg(bomb)


def test_an_image_that_is_larger_than_its_header_states_is_refused() -> None:
    with pytest.raises(InvalidImageError):
        reencode_as_jpeg(make_gif_bomb())


def test_compressed_metadata_that_expands_without_end_is_refused() -> None:
    note = PngImagePlugin.PngInfo()
    note.add_text("comment", "x" * 70_000_000, zip=True)
    target = io.BytesIO()
    Image.new("RGB", (10, 10)).save(target, "PNG", pnginfo=note)
    assert len(target.getvalue()) < 200_000
    with pytest.raises(InvalidImageError):
        reencode_as_jpeg(target.getvalue())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("share", [0.3, 0.6, 0.9])
def test_a_truncated_image_is_refused(kind: str, share: float) -> None:
    noise = Image.effect_noise((80, 80), 100).convert("RGB")
    target = io.BytesIO()
    noise.save(target, kind)
    raw = target.getvalue()
    assert reencode_and_open(raw).size == (80, 80)
    with pytest.raises(InvalidImageError):
        reencode_as_jpeg(raw[: int(len(raw) * share)])


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
def test_a_file_that_only_begins_like_an_image_is_refused(fake: bytes) -> None:
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
def test_other_kinds_are_not_decoded(other: bytes) -> None:
    with pytest.raises(InvalidImageError, match="is none of image/jpeg"):
        check_image_header(other)


@pytest.mark.parametrize("kind", KINDS)
def test_bytes_behind_an_image_are_removed(kind: str) -> None:
    hidden = b"<html><script>alert(1)</script></html>PK\x03\x04"
    data, _ = reencode_as_jpeg(make_image(20, 20, kind) + hidden)
    assert b"script" not in data
    assert b"PK\x03\x04" not in data


@pytest.mark.filterwarnings("ignore")  # Pillow warns of some of the changes
@pytest.mark.parametrize("kind", KINDS)
def test_a_damaged_image_is_reencoded_or_refused(kind: str) -> None:
    """Each byte of a small image is inverted, one at a time."""
    raw = make_image(9, 7, kind)
    for index in range(len(raw)):
        damaged = raw[:index] + bytes([raw[index] ^ 0xFF]) + raw[index + 1 :]
        with contextlib.suppress(InvalidImageError):
            reencode_and_open(damaged)


class TestAcceptUnchanged:
    @pytest.mark.parametrize("kind", ["PNG", "JPEG"])
    def test_an_intact_small_image_is_accepted(self, kind: str) -> None:
        assert accept_unchanged(make_image(60, 40, kind)) == check_image_header(make_image(60, 40, kind))

    @pytest.mark.parametrize(
        "raw", [make_image(60, 40, "GIF"), make_image(60, 40, "WEBP"), make_image(1600, 20, "PNG")]
    )
    def test_other_images_have_to_be_reencoded(self, raw: bytes) -> None:
        assert accept_unchanged(raw) is None

    @pytest.mark.parametrize("raw", [make_png_header(), make_image(60, 40, "PNG")[:-30], make_jpeg_header()])
    def test_a_damaged_image_is_refused(self, raw: bytes) -> None:
        with pytest.raises(InvalidImageError):
            accept_unchanged(raw)


def test_there_is_a_limit_for_each_accepted_kind() -> None:
    for kind in KINDS:
        assert MAX_INPUT_IMAGE_PIXELS[f"image/{kind.lower()}"] >= MAX_STORED_IMAGE_PIXELS


@pytest.mark.exhaustive
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux reports the peak memory of a process")
@pytest.mark.parametrize(
    ("kind", "size", "mode", "options"),
    [
        ("JPEG", (4000, 3000), "RGB", {"progressive": True, "quality": 85, "subsampling": 0}),
        ("PNG", (3840, 2160), "RGBA", {"compress_level": 1}),
        ("GIF", (3840, 2160), "P", {}),
        ("WEBP", (2560, 1600), "RGBA", {"method": 0}),
    ],
)
def test_the_largest_accepted_images_fit_into_the_memory_of_the_function(
    tmp_path: Path, kind: str, size: tuple[int, int], mode: str, options: dict[str, Any]
) -> None:
    """The function that re-encodes them has 208 MB, of which 80 are used before the first image."""
    Image.effect_noise((size[0] // 8, size[1] // 8), 80).resize(size).convert(mode).save(
        tmp_path / "image", kind, **options
    )
    setup = (
        "from fermata.conversations.image_reencoding import reencode_as_jpeg; import PIL.ImageOps; "
        "raw = open('image', 'rb').read()"
    )
    assert measure_peak_megabytes(setup, "reencode_as_jpeg(raw)", tmp_path) < 95


def add_scans(raw: bytes, count: int) -> bytes:
    """Return a JPEG whose last scan, of a few bytes, comes `count` times more."""
    scan = raw[raw.rindex(b"\xff\xda") : -2]
    return raw[:-2] + scan * count + b"\xff\xd9"


def test_a_jpeg_of_more_scans_than_encoders_write_is_refused_before_it_is_decoded() -> None:
    target = io.BytesIO()
    Image.new("RGB", (320, 320), "red").save(target, "JPEG", progressive=True)
    raw = target.getvalue()
    own = raw.count(b"\xff\xda")
    assert 1 < own <= 12
    assert check_image_header(add_scans(raw, MAX_JPEG_SCANS - own)).width == 320
    with pytest.raises(InvalidImageError, match="more than 64 scans"):
        check_image_header(add_scans(raw, MAX_JPEG_SCANS - own + 1))


def add_parts(kind: str, part: bytes, count: int) -> bytes:
    """Return an image with further parts behind its header."""
    raw = make_image(64, 64, kind)
    at = 33 if kind == "PNG" else raw.index(b"\xff\xda")
    return raw[:at] + part * count + raw[at:]


@pytest.mark.parametrize(
    ("kind", "part"),
    [
        ("PNG", b"\0\0\0\0prIv" + zlib.crc32(b"prIv").to_bytes(4, "big")),
        ("JPEG", b"\xff\xfe\0\x02"),
        ("JPEG", b"\xff"),
    ],
    ids=["chunks", "segments", "padding"],
)
def test_an_image_of_more_parts_than_encoders_write_is_refused_before_it_is_decoded(kind: str, part: bytes) -> None:
    """10 MB of them took a decoder up to five seconds."""
    assert check_image_header(add_parts(kind, part, MAX_IMAGE_PARTS - 100)).width == 64
    with pytest.raises(InvalidImageError, match="more than 20,000 parts"):
        check_image_header(add_parts(kind, part, MAX_IMAGE_PARTS + 1))


def test_padding_in_front_of_a_frame_is_not_read_to_its_end() -> None:
    raw = make_image(64, 64, "JPEG")
    with pytest.raises(InvalidImageError, match="is none of"):
        check_image_header(raw[:2] + b"\xff" * MAX_IMAGE_PARTS + raw[2:])


def test_what_follows_the_end_of_a_jpeg_and_its_thumbnail_count_no_scans() -> None:
    """Telephones append films, in which any bytes occur."""
    raw = make_image(40, 30)
    noise = b"\xff\xda" * (MAX_JPEG_SCANS + 1)
    thumbnail = b"\xff\xe1" + (2 + len(noise)).to_bytes(2, "big") + noise
    assert check_image_header(raw[:2] + thumbnail + raw[2:] + noise).width == 40
