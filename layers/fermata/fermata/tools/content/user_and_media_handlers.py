"""Handle the tools that list possible authors and existing media."""

from typing import Any

from fermata.hosts.content_host import ContentHost
from fermata.tools.content.document_handlers import DEFAULT_PAGE_SIZE
from fermata.tools.content.server_tools import ListMediaInput
from fermata.tools.host_queries import query_host
from fermata.tools.lenient_models import LenientModel
from fermata.tools.tool import NoInput, ToolContext


class HostUser(LenientModel):
    """A user of the content system."""

    id: str
    email: str = ""
    display_name: str = ""
    role_slug: str = ""
    role_name: str = ""


class HostUserList(LenientModel):
    """The content system's answer to a request for its users."""

    users: tuple[HostUser, ...]


class MediaItem(LenientModel):
    """An image or other file of the media library."""

    id: str
    filename: str = ""
    public_path: str
    mime_type: str = ""
    alt_text: str | None = None
    width: int | None = None
    height: int | None = None


class MediaList(LenientModel):
    """The first media that match a query. `total` counts all matches."""

    total: int
    media: tuple[MediaItem, ...]


def list_content_users(_tool_input: NoInput, context: ToolContext) -> dict[str, Any]:
    answer = query_host(context, "Users", lambda host: host.list_users(), HostUserList)
    return {"users": [user.model_dump(by_alias=True) for user in answer.users]}


def list_media(tool_input: ListMediaInput, context: ToolContext) -> dict[str, Any]:
    """List media files of the content system, a page at most.

    Raises:
        ToolFailure: There is no content system, or it refused the query.
    """
    limit = tool_input.limit or DEFAULT_PAGE_SIZE

    def query(host: ContentHost) -> Any:
        return host.list_media(query=tool_input.query or None, mime_type=tool_input.mime_type or None, limit=limit)

    answer = query_host(context, "Media", query, MediaList)
    return {"total": answer.total, "media": [item.model_dump(by_alias=True) for item in answer.media[:limit]]}
