"""Find images and other assets of the project, and change what is said of them, for the tools of the studio."""

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from fermata.content.built_in_models import ASSET_MODEL
from fermata.content.change_sets.change_set import ChangeSet
from fermata.content.content_model import DEFINITION_LOCALE
from fermata.content.documents.document import DocumentContent, DocumentKey
from fermata.content.documents.review_workflow import REVIEW_WORKFLOW
from fermata.content.media.asset_files import FILES_FIELD, list_asset_files
from fermata.content.media.asset_store import (
    MAX_ASSET_TAGS,
    AssetTexts,
    build_asset_path,
    name_media_format,
    store_asset,
)
from fermata.content.media.fetch_image import fetch_image, name_file_of_url
from fermata.content.media.redraw_image import ORIGINAL
from fermata.domain.errors import InvalidRequest, NotFound
from fermata.tools.studio.project_permissions import CallerRefused
from fermata.tools.studio.studio_access import StudioAccess

_MAX_ALT_CHARS, _MAX_TAG_CHARS, _MAX_USES = 500, 60, 50


def search_media(arguments: dict[str, Any], access: StudioAccess) -> list[dict[str, Any]]:
    """Return assets by a text of their name, alternative text or tags, by tags and by media type."""
    query, tags = str(arguments.get("query") or "").casefold(), set(arguments.get("tags") or ())
    media_type, limit = arguments.get("type") or "", arguments.get("limit", 10)
    found = []
    for asset_id, content in _list_assets(access).items():
        fields = content.get_locale(DEFINITION_LOCALE)
        own_tags = set(fields.get("tags") or ())
        texts = (fields.get("filename"), fields.get("alt"), *own_tags)
        matches = not query or any(query in str(text).casefold() for text in texts if text)
        if matches and tags <= own_tags and str(fields.get("mediaType", "")).startswith(media_type):
            found.append(_describe_asset(asset_id, content, access))
    return found[:limit]


def upload_media(arguments: dict[str, Any], access: StudioAccess) -> dict[str, Any]:
    """Fetch a file from a public address, and store it as an asset; an image with the sizes of a preset."""
    url, preset = arguments["url"], arguments.get("variants", "")
    alt, tags = _read_texts(arguments)
    opened = access.opened
    texts = AssetTexts(name_file_of_url(url), alt, tuple(tags), source="url")
    stored = store_asset(opened.documents, fetch_image(url), texts, preset=preset)
    described = _describe_asset(stored.version.id, stored.version.content or DocumentContent(), access)
    chosen = {name: described[name] for name in ("id", "filename", "dimensions", "path", "variants")}
    return {**chosen, "isNew": stored.is_new, **_say_what_waits(access)}


def _read_texts(arguments: Mapping[str, Any]) -> tuple[str, list[str]]:
    """Return the alternative text and the tags of a call.

    Raises:
        InvalidRequest: They are too long, or too many.
    """
    alt, tags = str(arguments.get("alt") or ""), list(arguments.get("tags") or [])
    if len(alt) > _MAX_ALT_CHARS or len(tags) > MAX_ASSET_TAGS or any(len(tag) > _MAX_TAG_CHARS for tag in tags):
        raise InvalidRequest(
            f"'alt' has at most {_MAX_ALT_CHARS} characters, and there are at most {MAX_ASSET_TAGS} tags of "
            f"{_MAX_TAG_CHARS} characters."
        )
    return alt, tags


def get_media(arguments: dict[str, Any], access: StudioAccess) -> dict[str, Any]:
    """Return an asset, and which entries name it."""
    asset_id = arguments["assetId"]
    described = _describe_asset(asset_id, _find_asset(asset_id, access), access)
    return described | {"usedIn": _list_uses(asset_id, access)}


def update_media(arguments: dict[str, Any], access: StudioAccess) -> dict[str, Any]:
    """Change the alternative text, the tags or the focal point of an asset: at once, or after a review."""
    _read_texts(arguments)
    _find_asset(arguments["assetId"], access)
    fields: dict[str, Any] = {name: arguments[name] for name in ("alt", "tags", "focalPoint") if name in arguments}
    key = DocumentKey(ASSET_MODEL.id, arguments["assetId"])
    written = access.opened.documents.update(key, lambda content: content.with_fields(DEFINITION_LOCALE, fields))
    return _describe_asset(key.id, written.version.content or DocumentContent(), access) | _say_what_waits(access)


def delete_media(arguments: dict[str, Any], access: StudioAccess) -> dict[str, Any]:
    """Delete an asset, and say which entries still name it. It can be restored."""
    asset_id = arguments["assetId"]
    if not access.opened.has_been_done():
        _find_asset(asset_id, access)
        _check_is_not_used_elsewhere(asset_id, access)
    used = _list_uses(asset_id, access)
    access.opened.documents.delete(DocumentKey(ASSET_MODEL.id, asset_id))
    return {"deleted": True, "usedIn": used, **_say_what_waits(access)}


def _list_uses(asset_id: str, access: StudioAccess) -> list[str]:
    """Return entries that name an asset, of the models and in the languages that the caller may see."""
    return list(islice(_iter_uses(asset_id, access), _MAX_USES))


def _iter_uses(asset_id: str, access: StudioAccess) -> Iterator[str]:
    for model in access.models.values():
        for entry_id, content in access.list_entries(model).items() if model.id != ASSET_MODEL.id else ():
            if asset_id in repr(content.locales):
                yield f"{model.id}/{entry_id}"


def _check_is_not_used_elsewhere(asset_id: str, access: StudioAccess) -> None:
    """Check that an asset is missed by no content that the caller may not change.

    Raises:
        CallerRefused: It would be.
    """
    if not access.permissions.is_restricted:
        return
    if set(_iter_uses(asset_id, access.without_restrictions())) - set(_iter_uses(asset_id, access)):
        raise CallerRefused(
            "model_access_denied",
            "Content that you may not change names this asset. Ask somebody who may change all of the project.",
        )


def _say_what_waits(access: StudioAccess) -> dict[str, Any]:
    """Return the branch that a change of an asset waits in for a review; nothing for one that is stored."""
    change_set = access.opened.documents.changed_in
    if not change_set:
        return {}
    return {"merged": False, "workflow": REVIEW_WORKFLOW, "reviewBranch": ChangeSet(id=change_set).branch_name}


def _list_assets(access: StudioAccess) -> dict[str, DocumentContent]:
    """Return the assets by id, as they are in the branch of the conversation if it has one."""
    changed = access.opened.documents.list_changed(ASSET_MODEL.id)
    assets = access.list_entries(ASSET_MODEL) | changed
    return {name: content for name, content in assets.items() if content is not None}


def _find_asset(asset_id: str, access: StudioAccess) -> DocumentContent:
    assets = _list_assets(access)
    if asset_id not in assets:
        raise NotFound(f"There is no asset {asset_id}. search_media finds assets.")
    return assets[asset_id]


def _describe_asset(asset_id: str, content: DocumentContent, access: StudioAccess) -> dict[str, Any]:
    fields = dict(content.get_locale(DEFINITION_LOCALE))
    fields.pop(FILES_FIELD, None)
    dimensions = {name: fields[name] for name in ("width", "height") if name in fields}
    files = {str(file.get("name")): file for file in list_asset_files(content)}
    variants = {name: _describe_variant(access, asset_id, file) for name, file in files.items()}
    path = build_asset_path(access.opened.space, asset_id, ORIGINAL)
    media_format = name_media_format(str(fields.get("mediaType", "")))
    return {
        "id": asset_id, "format": media_format, **fields, "dimensions": dimensions or None, "path": path,
        "variants": variants,
    }  # fmt: skip


def _describe_variant(access: StudioAccess, asset_id: str, file: Mapping[str, Any]) -> dict[str, Any]:
    said = {name: file[name] for name in ("width", "height", "size") if name in file}
    path = build_asset_path(access.opened.space, asset_id, str(file.get("name")))
    return {"path": path, "format": name_media_format(str(file.get("mediaType", ""))), **said}
