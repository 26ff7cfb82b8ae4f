"""List the pictures of one folder of Google Drive that is shared with everyone who has its link."""

from typing import Any

from fermata.remote_tools.built_in.built_in_call import BuiltInCall
from fermata.remote_tools.manifest_tool_executor import AttemptFailed

DRIVE_FILES_URL = "https://www.googleapis.com/drive/v3/files"
_FIELDS = "files(id,name,description,thumbnailLink,webViewLink,owners(displayName))"


def browse_folder(call: BuiltInCall) -> Any:
    """Return the newest pictures of the folder whose names contain a text."""
    folder = call.options["folderId"]
    conditions = [f"'{_escape(folder)}' in parents", "mimeType contains 'image/'", "trashed = false"]
    if query := str(call.arguments.get("query") or "").strip():
        conditions.append(f"name contains '{_escape(query)}'")
    limit = min(max(int(call.arguments.get("limit", 5)), 1), 10)
    parameters = {
        "q": " and ".join(conditions),
        "pageSize": limit,
        "orderBy": "modifiedTime desc",
        "fields": _FIELDS,
        "key": call.api_key,
    }
    found = call.get_json("Google Drive", DRIVE_FILES_URL, parameters, {})
    files = found.get("files", []) if isinstance(found, dict) else []
    return {"items": [_to_item(file) for file in files[:limit]]}


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace("'", "\\'")


def _to_item(file: Any) -> dict[str, str]:
    try:
        owners = file.get("owners") or [{}]
        return {
            "id": file["id"],
            "imageUrl": f"https://drive.google.com/uc?export=view&id={file['id']}",
            "thumbUrl": file.get("thumbnailLink") or "",
            "alt": file.get("description") or file["name"],
            "author": owners[0].get("displayName") or "",
            "sourceUrl": file.get("webViewLink") or "",
        }
    except (KeyError, TypeError, AttributeError, IndexError):
        raise AttemptFailed("Google Drive described a file in a way that is not known.") from None
