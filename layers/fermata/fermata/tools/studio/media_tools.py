"""Find images and other assets of the project, and change what is said of them, for the tools of the studio."""

from typing import Any

from fermata.content.built_in_models import ASSET_MODEL
from fermata.content.change_sets.change_set import ChangeSet
from fermata.content.content_model import DEFINITION_LOCALE
from fermata.content.documents.document import DocumentContent, DocumentKey
from fermata.content.documents.review_workflow import REVIEW_WORKFLOW
from fermata.content.media.asset_store import (
    MAX_ASSET_TAGS,
    AssetTexts,
    build_asset_path,
    store_asset,
)
from fermata.content.media.fetch_image import fetch_image, name_file_of_url
from fermata.content.media.media_room import list_asset_files
from fermata.content.media.redraw_image import ORIGINAL
from fermata.domain.errors import InvalidRequest, NotFound
from fermata.tools.studio.studio_access import StudioAccess

_MAX_ALT_CHARS, _MAX_TAG_CHARS = 500, 60


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
            found.append(_describe_asset(asset_id, content))
    return found[:limit]


def upload_media(arguments: dict[str, Any], access: StudioAccess) -> dict[str, Any]:
    """Fetch an image from a public address, and store it as an asset with the sizes of a preset."""
    url, preset, tags = arguments["url"], arguments.get("variants", ""), arguments.get("tags") or []
    alt = str(arguments.get("alt") or "")
    if len(alt) > _MAX_ALT_CHARS or len(tags) > MAX_ASSET_TAGS or any(len(tag) > _MAX_TAG_CHARS for tag in tags):
        raise InvalidRequest(
            f"'alt' has at most {_MAX_ALT_CHARS} characters, and there are at most {MAX_ASSET_TAGS} tags of "
            f"{_MAX_TAG_CHARS} characters."
        )
    opened = access.opened
    texts = AssetTexts(name_file_of_url(url), alt, tuple(tags))
    stored = store_asset(opened.documents, fetch_image(url), texts, preset=preset)
    content = stored.version.content or DocumentContent()
    variants = {
        str(file["name"]): {
            "path": build_asset_path(opened.space, stored.version.id, str(file["name"])),
            "format": str(file["mediaType"]).removeprefix("image/"),
            **{name: file[name] for name in ("width", "height", "size")},
        }
        for file in list_asset_files(content)
    }
    described = _describe_asset(stored.version.id, content)
    chosen = {name: described[name] for name in ("id", "filename", "dimensions")}
    path = build_asset_path(opened.space, stored.version.id, ORIGINAL)
    return {**chosen, "path": path, "variants": variants, "isNew": stored.is_new, **_say_what_waits(access)}


def get_media(arguments: dict[str, Any], access: StudioAccess) -> dict[str, Any]:
    """Return an asset."""
    return _describe_asset(arguments["assetId"], _find_asset(arguments["assetId"], access))


def update_media(arguments: dict[str, Any], access: StudioAccess) -> dict[str, Any]:
    """Change the alternative text, the tags or the focal point of an asset: at once, or after a review."""
    _find_asset(arguments["assetId"], access)
    fields: dict[str, Any] = {name: arguments[name] for name in ("alt", "tags", "focalPoint") if name in arguments}
    key = DocumentKey(ASSET_MODEL.id, arguments["assetId"])
    written = access.opened.documents.update(key, lambda content: content.with_fields(DEFINITION_LOCALE, fields))
    return _describe_asset(key.id, written.version.content or DocumentContent()) | _say_what_waits(access)


def delete_media(arguments: dict[str, Any], access: StudioAccess) -> dict[str, Any]:
    """Delete an asset, and say which entries still name it. It can be restored."""
    asset_id = arguments["assetId"]
    if not access.opened.has_been_done():
        _find_asset(asset_id, access)
    used = [
        f"{key.model}/{key.id}"
        for key, version in access.whole.versions.items()
        if key.model in access.models
        and key.model != ASSET_MODEL.id
        and version.content
        and asset_id in repr(version.content.locales)
    ]
    access.opened.documents.delete(DocumentKey(ASSET_MODEL.id, asset_id))
    return {"deleted": True, "usedIn": used[:50], **_say_what_waits(access)}


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


def _describe_asset(asset_id: str, content: DocumentContent) -> dict[str, Any]:
    fields = dict(content.get_locale(DEFINITION_LOCALE))
    dimensions = {name: fields[name] for name in ("width", "height") if name in fields}
    return {"id": asset_id, **fields, "dimensions": dimensions or None}
