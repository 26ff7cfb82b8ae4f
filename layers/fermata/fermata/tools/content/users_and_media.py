"""Who can be an author, and which media there are."""

from typing import Any

from fermata.hosts.client import HostClient
from fermata.tools.content.documents import DEFAULT_PAGE_SIZE
from fermata.tools.content.inputs import ListMediaInput
from fermata.tools.host_queries import query_host
from fermata.tools.site.snapshot import LenientModel
from fermata.tools.tool import NoInput, ToolContext


class HostUser(LenientModel):
    id: str
    email: str = ""
    display_name: str = ""
    role_slug: str = ""
    role_name: str = ""


class HostUserList(LenientModel):
    users: tuple[HostUser, ...]


class MediaItem(LenientModel):
    id: str
    filename: str = ""
    public_path: str
    mime_type: str = ""
    alt_text: str | None = None
    width: int | None = None
    height: int | None = None


class MediaList(LenientModel):
    total: int
    media: tuple[MediaItem, ...]


def list_content_users(given: NoInput, context: ToolContext) -> dict[str, Any]:
    found = query_host(context, "Users", lambda host: host.list_users(), HostUserList)
    return {"users": [user.model_dump(by_alias=True) for user in found.users]}


def list_media(given: ListMediaInput, context: ToolContext) -> dict[str, Any]:
    limit = given.limit or DEFAULT_PAGE_SIZE

    def question(host: HostClient) -> Any:
        return host.list_media(query=given.query or None, mime_type=given.mime_type or None, limit=limit)

    found = query_host(context, "Media", question, MediaList)
    return {"total": found.total, "media": [medium.model_dump(by_alias=True) for medium in found.media[:limit]]}
