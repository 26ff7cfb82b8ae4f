"""Search stock photos of Pexels, and make one an image of the site.

Photographer and page have to be shown beside a photo that is used.
"""

from typing import Any

from fermata.remote_tools.built_in.built_in_call import BuiltInCall, FoundPhoto
from fermata.remote_tools.manifest_tool_executor import AttemptFailed

PEXELS_URL = "https://api.pexels.com/v1"
_LABEL = "Pexels"
MAX_PEXELS_PHOTOS = 80
_DEFAULT_PHOTOS = 10
_MAX_COLOR_CHARS = 30
_MAX_TAG_CHARS = 60


def search_pexels(call: BuiltInCall) -> Any:
    """Return photos for a text, with whose they are and where they come from; none for a blank text."""
    arguments = call.arguments
    text = str(arguments["query"]).strip()
    if not text:
        return {"success": True, "photos": [], "totalResults": 0, "query": ""}
    count = min(max(int(arguments.get("perPage", _DEFAULT_PHOTOS)), 1), MAX_PEXELS_PHOTOS)
    query: dict[str, Any] = {"query": text, "per_page": count}
    if orientation := arguments.get("orientation"):
        query["orientation"] = orientation
    if color := str(arguments.get("color") or "").strip()[:_MAX_COLOR_CHARS]:
        query["color"] = color
    found = call.get_json(_LABEL, f"{PEXELS_URL}/search", query, {"authorization": call.api_key})
    photos = found.get("photos") if isinstance(found, dict) else None
    if not isinstance(photos, list):
        raise AttemptFailed("Pexels answered in a way that is not known.")
    total = found.get("total_results")
    return {
        "success": True,
        "photos": [_describe_photo(photo) for photo in photos[:count]],
        "totalResults": total if isinstance(total, int) else len(photos),
        "query": text,
    }


def download_pexels(call: BuiltInCall) -> Any:
    """Store a photo as an image of the site, with whose it is."""
    photo_id = int(call.arguments["photoId"])
    found = call.get_json(_LABEL, f"{PEXELS_URL}/photos/{photo_id}", {}, {"authorization": call.api_key})
    photo = _describe_photo(found)
    tags = ("pexels", f"pexels:{photo_id}", f"photographer:{photo['photographer']}"[:_MAX_TAG_CHARS])
    stored = call.store_photo(FoundPhoto(photo["imageUrl"], f"pexels-{photo_id}.jpeg", str(photo["alt"]), tags))
    message = f"Stored the photo. Show that it is by {photo['photographer']} on Pexels: {photo['sourceUrl']}"
    return {
        "success": True,
        **stored,
        "description": photo["alt"],
        "photographer": photo["photographer"],
        "sourceUrl": photo["sourceUrl"],
        "status": "completed",
        "message": message,
    }


def _describe_photo(photo: Any) -> dict[str, Any]:
    try:
        return {
            "id": photo["id"],
            "photographer": photo["photographer"],
            "photographerUrl": photo["photographer_url"],
            "sourceUrl": photo["url"],
            "alt": photo.get("alt") or "",
            "previewUrl": photo["src"]["medium"],
            "imageUrl": photo["src"]["large2x"],
            "avgColor": photo.get("avg_color") or "",
            "width": photo["width"],
            "height": photo["height"],
        }
    except (KeyError, TypeError, AttributeError):
        raise AttemptFailed("Pexels described a photo in a way that is not known.") from None
