"""Make a photo of a stock an image of the site that a turn works in, for the user of the turn."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from fermata.content.media.asset_store import AssetTexts, build_asset_path, store_asset
from fermata.content.media.fetch_image import fetch_image
from fermata.content.space_members import require_membership
from fermata.domain.caller import Caller, Capability
from fermata.domain.errors import ApiError, Forbidden
from fermata.remote_tools.built_in.built_in_call import FoundPhoto, refuse_photo
from fermata.remote_tools.manifest_tool_executor import AttemptFailed
from fermata.turns.turn import Turn

if TYPE_CHECKING:
    from fermata.content.opened_space import OpenedSpace

_WRITERS = (Capability.WRITE_CONTENT, Capability.CONTENT)


def store_site_photo(
    turn: Turn, open_space: "Callable[[str], OpenedSpace | None]", effect_key: str, photo: FoundPhoto
) -> Mapping[str, Any]:
    """Fetch a photo and store it, where changes of the user go; return what the tool says of it.

    Args:
        turn: The turn.
        open_space: Opens its site under the key of a call.
        effect_key: Of the call.
        photo: The photo.

    Raises:
        AttemptFailed: The turn works in no site, or the user may not write there, or the photo cannot be fetched.
    """
    opened = open_space(effect_key)
    if opened is None:
        return refuse_photo(photo)
    caller = Caller(tenant=turn.tenant, user=turn.user, capabilities=frozenset(turn.capabilities))
    try:
        _require_writer(opened, caller)
        texts = AssetTexts(photo.filename, photo.alt, photo.tags, source="connector")
        stored = store_asset(opened.documents, fetch_image(photo.url), texts)
    except ApiError as error:
        raise AttemptFailed(error.message) from error
    asset_id, change_set = stored.version.id, opened.documents.changed_in
    waits = {"changeSet": change_set, "waitsForReview": True} if change_set else {}
    url = build_asset_path(opened.space, asset_id)
    return {"imageId": asset_id, "url": url, "filename": photo.filename, "isNew": stored.is_new, **waits}


def _require_writer(opened: "OpenedSpace", caller: Caller) -> None:
    if not any(caller.has_capability(right) for right in _WRITERS):
        raise Forbidden(f"Forbidden: images of the site need {Capability.WRITE_CONTENT}.")
    member = require_membership(opened.resources, opened.space, caller)
    if member is not None and (member.role != "editor" or member.is_restricted):
        raise Forbidden("Forbidden: the user may not edit all of this site.")
