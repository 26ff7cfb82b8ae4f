"""Search licensed photos of Unsplash. Author and source have to be shown beside a photo that is used."""

import re
from typing import Any

from fermata.remote_tools.built_in.built_in_call import BuiltInCall
from fermata.remote_tools.manifest_tool_executor import AttemptFailed

UNSPLASH_URL = "https://api.unsplash.com"
_LABEL = "Unsplash"
_PHOTO_ID = re.compile(r"[A-Za-z0-9_-]{6,20}")
_ID_AT_END = re.compile(r"(?:^|[/-])([A-Za-z0-9_-]{11})(?:[/?#].*)?$")


def search_photos(call: BuiltInCall) -> Any:
    """Return photos for a text; none for a blank one."""
    query = str(call.arguments["query"]).strip()
    if not query:
        return {"items": []}
    limit = min(max(int(call.arguments.get("limit", 3)), 1), 5)
    found = call.get_json(
        _LABEL, f"{UNSPLASH_URL}/search/photos", {"query": query, "per_page": limit}, _build_headers(call)
    )
    photos = found.get("results", []) if isinstance(found, dict) else []
    return {"items": [_to_item(photo) for photo in photos[:limit]]}


def get_photo(call: BuiltInCall) -> Any:
    """Return a photo that is about to be used, and report its use, as the licence asks for."""
    photo_id = _find_photo_id(call)
    photo = call.get_json(_LABEL, f"{UNSPLASH_URL}/photos/{photo_id}", {}, _build_headers(call))
    item = _to_item(photo)
    call.get_json(_LABEL, f"{UNSPLASH_URL}/photos/{photo_id}/download", {}, _build_headers(call))
    kept = {name: item[name] for name in ("imageUrl", "alt", "author", "sourceUrl")}
    return kept | {"photoId": item["id"]}


def _find_photo_id(call: BuiltInCall) -> str:
    given = str(call.arguments.get("photoId") or "").strip()
    if _PHOTO_ID.fullmatch(given):
        return given
    found = _ID_AT_END.search(str(call.arguments.get("url") or "").strip())
    if found is None:
        raise AttemptFailed("Name the photo by its photoId, or by the url of its page on unsplash.com.")
    return found[1]


def _build_headers(call: BuiltInCall) -> dict[str, str]:
    return {"authorization": f"Client-ID {call.api_key}", "accept-version": "v1"}


def _to_item(photo: Any) -> dict[str, str]:
    try:
        return {
            "id": photo["id"],
            "imageUrl": photo["urls"]["regular"],
            "thumbUrl": photo["urls"]["thumb"],
            "alt": photo.get("alt_description") or photo.get("description") or "",
            "author": photo["user"]["name"],
            "sourceUrl": photo["links"]["html"],
        }
    except (KeyError, TypeError, AttributeError):
        raise AttemptFailed("Unsplash described a photo in a way that is not known.") from None
