"""Who can be an author, and which media there are."""

from typing import Any

from fermata.hosts.host import Host
from fermata.tools.content.documents import DEFAULT_LIMIT
from fermata.tools.content.inputs import ListMedia
from fermata.tools.hosted import ask
from fermata.tools.site.snapshot import Lenient
from fermata.tools.tool import NoInput, ToolContext


class User(Lenient):
    id: str
    email: str = ""
    display_name: str = ""
    role_slug: str = ""
    role_name: str = ""


class Users(Lenient):
    users: tuple[User, ...]


class Medium(Lenient):
    id: str
    filename: str = ""
    public_path: str
    mime_type: str = ""
    alt_text: str | None = None
    width: int | None = None
    height: int | None = None


class Media(Lenient):
    total: int
    media: tuple[Medium, ...]


def list_users(given: NoInput, context: ToolContext) -> dict[str, Any]:
    found = ask(context, "Users", lambda host: host.users(), Users)
    return {"users": [user.model_dump(by_alias=True) for user in found.users]}


def list_media(given: ListMedia, context: ToolContext) -> dict[str, Any]:
    limit = given.limit or DEFAULT_LIMIT

    def question(host: Host) -> Any:
        return host.media(query=given.query or None, mime_type=given.mime_type or None, limit=limit)

    found = ask(context, "Media", question, Media)
    return {"total": found.total, "media": [medium.model_dump(by_alias=True) for medium in found.media[:limit]]}
