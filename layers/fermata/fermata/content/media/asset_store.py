"""Store media as an asset: a document, and its files in the bucket. The same upload is stored once (decision 0460).

`content/<tenant>/<site>/<environment>/media/<sha256 of the upload>/<sha256 of the file>` has a file.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from fermata.aws.resources import Resources
from fermata.content.built_in_models import ASSET_MODEL
from fermata.content.content_model import DEFINITION_LOCALE
from fermata.content.content_space import SpaceKey
from fermata.content.documents.document import (
    MAX_DOCUMENT_TITLE_CHARS,
    ContentStatus,
    DocumentContent,
    DocumentKey,
    DocumentVersion,
)
from fermata.content.documents.document_writes import ValueTaken
from fermata.content.documents.read_document import read_document, read_write_basis
from fermata.content.media.asset_files import (
    BOX_FIELD,
    DIGEST_FIELD,
    FILE_DIGEST,
    FILES_FIELD,
    list_asset_files,
    media_folder,
    read_file_size,
)
from fermata.content.media.media_kind import PIXEL_TYPES, VIDEO_TYPES
from fermata.content.media.media_room import MediaRoom
from fermata.content.media.prepare_media import PreparedMedia, draw_sizes, prepare_media
from fermata.content.media.project_presets import find_preset_sizes
from fermata.content.media.redraw_image import ORIGINAL, RedrawnFile
from fermata.content.media.sweep_media import FILES_GONE, claim_digest, keep_media
from fermata.content.media.variant_presets import FocalPoint, PresetSize
from fermata.content.working_documents import WorkingDocuments
from fermata.domain.check_image_header import ImageTooLargeError, InvalidImageError
from fermata.domain.errors import Gone, InvalidRequest, NotFound, PayloadTooLarge

ASSET = ASSET_MODEL.id
_Drawn = TypeVar("_Drawn")
MAX_ASSET_TAGS = 50
ASSET_URL_SECONDS = 900
"""How long the address of a file is good for."""


class AssetTexts(NamedTuple):
    """What its uploader says of a file, and where it comes from: `upload`, `url`, `connector` or `agent`."""

    filename: str
    alt: str = ""
    tags: Sequence[str] = ()
    source: str = "upload"


class StoredAsset(NamedTuple):
    """An asset, and whether it is new."""

    version: DocumentVersion
    is_new: bool


def store_asset(documents: WorkingDocuments, raw: bytes, texts: AssetTexts, *, preset: str = "") -> StoredAsset:
    """Redraw an image, or take another file, and store it; or return the asset that the same upload has made before.

    Args:
        documents: Where it is stored, for who has uploaded it.
        raw: The file.
        texts: What it is called.
        preset: A name of `MEDIA_PRESETS`, or of a preset of the project, whose sizes the asset has too.

    Raises:
        NotFound: There is no such space.
        InvalidRequest: It is of no kind that is stored, or damaged; or there is no such preset.
        PayloadTooLarge: It has too many bytes, pixels or parts.
        ReviewRequired: As in `WorkingDocuments.create`. No file is stored.
        PlanLocked: Nobody pays for the workspace.
        PlanUpgradeRequired: The plan of the workspace has no room for it, or no presets of its own.
        ServiceUnavailable: Files of the same image, which nobody has used for long, are being deleted.
    """
    room = MediaRoom.open(documents.resources, documents.space.tenant)
    room.require_file_fits(len(raw))
    basis = read_write_basis(documents.resources, documents.space, [ASSET])
    basis.require_model(ASSET)
    sizes = find_preset_sizes(documents.resources, documents.space, preset)
    digest = hashlib.sha256(raw).hexdigest()
    if found := find_asset_by_digest(documents, digest):
        return StoredAsset(_add_missing(documents, found, raw, sizes), is_new=False)
    documents.require_writable(basis)
    keep_media(documents.resources, documents.space, digest, stores_files=True)
    media = _draw(lambda: prepare_media(raw, sizes))
    room.add(_count_bytes(media.files))
    _put_files(documents, digest, media.files)
    content = _build_content(digest, media, texts, sizes)
    try:
        return StoredAsset(documents.create(ASSET, content, effect_suffix="/asset").version, is_new=True)
    except ValueTaken:  # the same image was uploaded at the same moment
        if found := find_asset_by_digest(documents, digest):
            return StoredAsset(_add_missing(documents, found, raw, sizes), is_new=False)
        raise


def _add_missing(
    documents: WorkingDocuments, asset: DocumentVersion, raw: bytes, sizes: Sequence[PresetSize]
) -> DocumentVersion:
    """Add the files to an asset that it lacks, and return it: the sizes of a preset; all of one that was imported."""
    files = _draw(lambda: _draw_missing(asset, raw, sizes))
    if not files:
        return asset
    digest = hashlib.sha256(raw).hexdigest()
    keep_media(documents.resources, documents.space, digest, stores_files=True)
    MediaRoom.open(documents.resources, documents.space.tenant).add(_count_bytes(files))
    _put_files(documents, digest, files)
    records = {file.name: _describe_file(file, sizes) for file in files}

    def add_files(content: DocumentContent) -> DocumentContent:
        known = {str(file["name"]): file for file in list_asset_files(content)}
        return content.with_fields(DEFINITION_LOCALE, {FILES_FIELD: list((known | records).values())})

    return documents.update(asset.key, add_files, effect_suffix="/asset").version


def _draw_missing(asset: DocumentVersion, raw: bytes, sizes: Sequence[PresetSize]) -> list[RedrawnFile]:
    known = {file["name"]: file for file in list_asset_files(asset.content)}
    if not read_file_size(known.get(ORIGINAL, {})):
        return prepare_media(raw, sizes).files
    missing = [
        size for size in sizes if known.get(size.name, {}).get(BOX_FIELD, "") != size.box or size.name not in known
    ]
    focus = FocalPoint.parse(asset.content and asset.content.get_locale(DEFINITION_LOCALE).get("focalPoint"))
    return draw_sizes(raw, missing, focus)


def _count_bytes(files: Sequence[RedrawnFile]) -> int:
    return sum(len(file.data) for file in files)


def _put_files(documents: WorkingDocuments, digest: str, files: Sequence[RedrawnFile]) -> None:
    folder = media_folder(documents.space, digest)
    for file in files:
        documents.resources.blobs.put_bytes(folder, file.data, file.mime_type)


def find_asset_by_digest(documents: WorkingDocuments, digest: str) -> DocumentVersion | None:
    """Return the asset that an upload with this SHA-256 has made; None if there is none."""
    return documents.find_by_claim(claim_digest(digest))


def _draw(draw: Callable[[], _Drawn]) -> _Drawn:
    try:
        return draw()
    except ImageTooLargeError as error:
        raise PayloadTooLarge(f"The file {error}.") from error
    except InvalidImageError as error:
        raise InvalidRequest(f"The file {error}.") from error


def _build_content(
    digest: str, media: PreparedMedia, texts: AssetTexts, sizes: Sequence[PresetSize]
) -> DocumentContent:
    original = media.files[0]
    fields: dict[str, Any] = {
        "filename": texts.filename,
        "mediaType": original.mime_type,
        "format": name_media_format(original.mime_type),
        "size": len(original.data),
        "width": original.width or None,
        "height": original.height or None,
        "blurhash": media.blurhash or None,
        "source": texts.source,
        DIGEST_FIELD: digest,
        "alt": texts.alt or None,
        "tags": list(texts.tags) or None,
        FILES_FIELD: [_describe_file(file, sizes) for file in media.files],
    }
    title = (texts.alt or texts.filename)[:MAX_DOCUMENT_TITLE_CHARS]
    return DocumentContent(title=title, status=ContentStatus.PUBLISHED).with_fields(DEFINITION_LOCALE, fields)


def name_media_format(media_type: str) -> str:
    """Return the short name of a media type, such as `webp`, `svg` or `mp4`."""
    return media_type.partition("/")[2].partition("+")[0]


def _describe_file(file: RedrawnFile, sizes: Sequence[PresetSize]) -> dict[str, Any]:
    """Return the record of a file. One of a project's own preset says for which place it was drawn."""
    box = next((size.box for size in sizes if size.name == file.name), "")
    pixels = {"width": file.width, "height": file.height} if file.width and file.height else {}
    return {
        "name": file.name,
        "mediaType": file.mime_type,
        **pixels,
        "size": len(file.data),
        "sha256": hashlib.sha256(file.data).hexdigest(),
    } | ({BOX_FIELD: box} if box else {})


def presign_asset_file(resources: Resources, space: SpaceKey, version: DocumentVersion, name: str = ORIGINAL) -> str:
    """Return an address of a file, which is good for ASSET_URL_SECONDS. Storage sends parts of it to who asks for them.

    Browsers save a file that may hold scripts, and do not open it.

    Args:
        resources: Of the process.
        space: The space of the asset.
        version: The asset.
        name: The size. Of an image that is smaller, it is the original.

    Raises:
        NotFound: The document has no such file.
    """
    key, mime_type = _find_file(space, version, name)
    is_open = mime_type in {*PIXEL_TYPES, *VIDEO_TYPES}  # people can write the field: whatever else it says is saved
    return resources.blobs.presign_get(key, ASSET_URL_SECONDS, is_attachment=not is_open)


def fetch_asset_file(
    resources: Resources, space: SpaceKey, version: DocumentVersion, name: str = ORIGINAL
) -> tuple[str, bytes]:
    """Return the media type of a file and its bytes.

    Args:
        resources: Of the process.
        space: The space of the asset.
        version: The asset.
        name: The size. Of an image that is smaller, it is the original.

    Raises:
        NotFound: The document has no such file.
    """
    key, mime_type = _find_file(space, version, name)
    opened = resources.blobs.open_stream(key)
    if opened is None:
        raise NotFound(f"The file of the asset {version.id} is gone.")
    return mime_type, opened[1].read()


def _find_file(space: SpaceKey, version: DocumentVersion, name: str) -> tuple[str, str]:
    """Return the key and the media type of a file."""
    file = _choose_file(version, name)
    shared = version.content.get_locale(DEFINITION_LOCALE) if version.content else {}
    digests = (shared.get(DIGEST_FIELD), file.get("sha256"))
    # People can write these fields, too: nothing but two digests becomes part of a key.
    if not all(isinstance(digest, str) and FILE_DIGEST.fullmatch(digest) for digest in digests):
        raise NotFound(f"The asset {version.id} has no file.")
    return f"{media_folder(space, str(digests[0]))}/{digests[1]}", str(file.get("mediaType", ""))


def _choose_file(version: DocumentVersion, name: str) -> Mapping[str, Any]:
    files = {file.get("name"): file for file in list_asset_files(version.content)}
    return files.get(name) or files.get(ORIGINAL) or {}


def get_file_size(version: DocumentVersion, name: str) -> int:
    """Return how many bytes a file of an asset has, by its record.

    Args:
        version: The asset.
        name: The size. Of an image that is smaller, it is the original.
    """
    return read_file_size(_choose_file(version, name))


def require_asset_files(resources: Resources, space: SpaceKey, version: DocumentVersion) -> None:
    """Check that a deleted asset can be restored to a version, and keep its files from now on.

    Args:
        resources: Of the process.
        space: The space of the asset.
        version: The version that is to be restored.

    Raises:
        Gone: The files were deleted, a while after the asset was.
        ServiceUnavailable: They are being deleted at this moment.
    """
    if not list_asset_files(version.content):
        return
    key, _ = _find_file(space, version, ORIGINAL)
    keep_media(resources, space, key.split("/")[-2], stores_files=False)
    if resources.blobs.open_stream(key) is None:
        raise Gone(FILES_GONE)


def build_asset_path(space: SpaceKey, asset_id: str, size: str = "large") -> str:
    """Return the path of the API under which people download a size of an asset.

    Args:
        space: The space.
        asset_id: The asset.
        size: The size.
    """
    return f"/admin/api/ai/content/{space.name}/assets/{asset_id}/files/{size}"


def read_asset(resources: Resources, space: SpaceKey, asset_id: str) -> DocumentVersion:
    """Return an asset.

    Args:
        resources: Of the process.
        space: Where it is.
        asset_id: Its id, with or without `asset.` before it.

    Raises:
        NotFound: There is no such asset.
    """
    return read_document(resources, space, make_asset_key(asset_id))


def make_asset_key(asset_id: str) -> DocumentKey:
    """Return the document of an asset's id, with or without `asset.` before it."""
    return DocumentKey(ASSET, asset_id.removeprefix(f"{ASSET}."))
