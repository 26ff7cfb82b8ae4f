"""Images are redrawn and stored once: what survives, which sizes there are, hostile files, delivery."""

import hashlib
from io import BytesIO

import pytest
from PIL import Image

from fermata.aws.resources import Resources
from fermata.content.content_space import SpaceKey
from fermata.content.documents.change_document import delete_document, update_document
from fermata.content.documents.document import DocumentKey, DocumentVersion
from fermata.content.media import prepare_media
from fermata.content.media.asset_files import list_asset_files
from fermata.content.media.asset_store import (
    AssetTexts,
    presign_asset_file,
    read_asset,
    store_asset,
)
from fermata.content.media.redraw_image import MAX_WEBP_EDGE_PIXELS, VARIANT_WIDTHS, RedrawnFile, redraw_image
from fermata.content.working_documents import WorkingDocuments
from fermata.domain.check_image_header import InvalidImageError
from fermata.domain.errors import InvalidRequest, NotFound, PayloadTooLarge
from tests.images import make_image, make_jpeg_header, make_png_header, open_image
from tests.unit.content.conftest import ADA

TEXTS = AssetTexts("bread.jpg", "A loaf", ("bread",))


def store_image_of(resources: Resources, space: SpaceKey, raw: bytes) -> DocumentVersion:
    return store_asset(WorkingDocuments(resources, space, ADA), raw, TEXTS).version


def list_keys(resources: Resources, space: SpaceKey) -> list[str]:
    return [version.key for version in resources.blobs.list_versions(f"{space.folder}/media")]


def test_an_image_is_redrawn_upright_and_without_what_was_hidden_in_its_file() -> None:
    exif = Image.Exif()
    exif[0x0112], exif[0x010F] = 6, "Camera of Ada"
    raw = make_image(40, 30, exif=exif) + b"<script>alert(1)</script>"
    original = redraw_image(raw)[0]
    assert (original.width, original.height, original.mime_type) == (30, 40, "image/jpeg")
    assert b"Camera" not in original.data
    assert b"script" not in original.data


@pytest.mark.parametrize(
    ("width", "names"),
    [
        (100, ["original", "thumbnail"]),
        (640, ["original", "thumbnail"]),
        (641, ["original", "small", "thumbnail"]),
        (2000, ["original", "large", "medium", "small", "thumbnail"]),
    ],
)
def test_an_image_has_each_size_that_is_smaller_than_itself(width: int, names: list[str]) -> None:
    files = redraw_image(make_image(width, 90))
    assert [file.name for file in files] == names
    assert [file.width for file in files[1:-1]] == [VARIANT_WIDTHS[name] for name in names[1:-1]]
    for file in files:
        assert open_image(file.data).size == (file.width, file.height)
    assert files[-1].width == files[-1].height == 90


def test_a_size_that_is_too_long_for_webp_is_written_as_another_kind() -> None:
    files = {file.name: file for file in redraw_image(make_image(641, 18_000))}
    assert (files["small"].height > MAX_WEBP_EDGE_PIXELS, files["small"].mime_type) == (True, "image/jpeg")
    assert open_image(files["small"].data).size == (640, files["small"].height)


@pytest.mark.parametrize(("kind", "written"), [("PNG", "PNG"), ("GIF", "PNG"), ("WEBP", "WEBP")])
def test_what_is_transparent_stays_so(kind: str, written: str) -> None:
    target = BytesIO()
    Image.new("RGBA", (700, 30), (255, 0, 0, 0)).save(target, kind)
    files = redraw_image(target.getvalue())
    assert open_image(files[0].data).format == written
    for file in files:
        assert open_image(file.data).convert("RGBA").getchannel("A").getpixel((5, 5)) == 0


@pytest.mark.parametrize("raw", [b"", b"<svg onload='x()'/>", b"%PDF-1.7", make_image()[:200], make_jpeg_header()])
def test_what_is_no_whole_image_is_refused_and_nothing_is_stored(
    resources: Resources, space: SpaceKey, raw: bytes
) -> None:
    with pytest.raises(InvalidRequest, match="The file is"):
        store_image_of(resources, space, raw)
    assert list_keys(resources, space) == []


def test_an_image_bomb_is_refused_before_it_is_decoded(
    resources: Resources, space: SpaceKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fermata.content.media.redraw_image.decode_image", None)
    with pytest.raises(PayloadTooLarge, match="60,000 by 60,000 pixels"):
        store_image_of(resources, space, make_png_header(60_000, 60_000))


def test_an_image_that_is_larger_inside_than_its_first_header_says_is_refused() -> None:
    bomb = BytesIO()
    Image.new("1", (5000, 5000)).save(bomb, "PNG")
    raw = make_png_header(10, 10)[:33] + bomb.getvalue()[8:]
    with pytest.raises(InvalidImageError):
        redraw_image(raw)


def test_the_same_upload_is_one_asset_and_is_drawn_once(
    resources: Resources, space: SpaceKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw = make_image(700, 30)
    first = store_asset(WorkingDocuments(resources, space, ADA), raw, TEXTS)
    monkeypatch.setattr(prepare_media, "redraw_image", None)
    again = store_asset(WorkingDocuments(resources, space, ADA), raw, AssetTexts("copy.jpg"))
    assert (first.is_new, again.is_new, again.version.id) == (True, False, first.version.id)
    assert len(list_keys(resources, space)) == 3


def test_of_two_uploads_of_one_image_at_the_same_moment_both_get_the_same_asset(
    resources: Resources, space: SpaceKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw = make_image()
    other: list[DocumentVersion] = []

    def draw_slowly(data: bytes) -> list[RedrawnFile]:
        monkeypatch.setattr(prepare_media, "redraw_image", redraw_image)
        other.append(store_image_of(resources, space, data))
        return redraw_image(data)

    monkeypatch.setattr(prepare_media, "redraw_image", draw_slowly)
    assert store_image_of(resources, space, raw).id == other[0].id


def test_an_image_that_was_deleted_can_be_uploaded_again(resources: Resources, space: SpaceKey) -> None:
    first = store_image_of(resources, space, make_image())
    delete_document(resources, space, first.key, ADA)
    again = store_asset(WorkingDocuments(resources, space, ADA), make_image(), TEXTS)
    assert again.is_new
    assert again.version.id != first.id


def test_an_asset_says_what_it_is_and_each_file_is_delivered(resources: Resources, space: SpaceKey) -> None:
    version = store_image_of(resources, space, make_image(700, 30))
    assert read_asset(resources, space, f"asset.{version.id}") == version
    files = list_asset_files(version.content)
    assert [(file["name"], file["width"], file["mediaType"]) for file in files] == [
        ("original", 700, "image/jpeg"),
        ("small", 640, "image/webp"),
        ("thumbnail", 30, "image/webp"),
    ]
    for file in files:
        url = presign_asset_file(resources, space, version, file["name"])
        data = resources.blobs.get_bytes(url[url.index("content/") :].partition("?")[0])
        assert hashlib.sha256(data).hexdigest() == file["sha256"]
    assert "/media/" in presign_asset_file(resources, space, version, "large"), "the original of a small image"


@pytest.mark.parametrize(
    "fields",
    [
        {"files": None},
        {"files": "all"},
        {"files": [{"name": ["original"]}]},
        {"files": [{"name": "original", "sha256": "../x"}]},
    ],
)
def test_what_people_write_into_an_asset_names_no_other_object(
    resources: Resources, space: SpaceKey, fields: dict[str, object]
) -> None:
    version = store_image_of(resources, space, make_image())
    assert version.content is not None
    forged = version.model_copy(update={"content": version.content.with_fields("data", fields)})
    with pytest.raises(NotFound, match="has no file"):
        presign_asset_file(resources, space, forged)


def test_texts_of_an_image_are_changed_like_those_of_any_document(resources: Resources, space: SpaceKey) -> None:
    key = DocumentKey("asset", store_image_of(resources, space, make_image()).id)
    written = update_document(
        resources, space, key, ADA, lambda content: content.with_fields("data", {"alt": "Rye bread"})
    )
    assert written.version.content is not None
    assert written.version.content.get_locale("data")["alt"] == "Rye bread"
