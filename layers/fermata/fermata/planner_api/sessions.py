"""Find the conversation of a session, whose draft it edits: one for each user, site and session (decision 0341)."""

import hashlib
import json
import re
from dataclasses import replace
from functools import partial
from typing import Any

from fermata.aws.clock import new_id
from fermata.aws.resources import Resources
from fermata.conversations.conversation_store import create_conversation, get_conversation
from fermata.domain.caller import Caller
from fermata.domain.conversation import Conversation
from fermata.domain.errors import Gone, InvalidRequest, NotFound
from fermata.limits.count_use import UseCounter, count_single_use
from fermata.limits.usage_counters import Use
from fermata.plans.drafts.draft_rows import DraftLocation
from fermata.plans.page_model import HOME_SLUG
from fermata.wire.bodies.planner_requests import JsonOrText
from fermata.wire.http.routing import RequestContext

PLANNER_SCOPE = "planner"
DEFAULT_SITE = "default"
MAX_SLUG_CHARACTERS = 200
_NAME = re.compile(r"[A-Za-z0-9._:-]{1,120}")
DELETED_SESSION = "This session was deleted. Use another name."


def make_session_key(session: str, site: str | None) -> str:
    """Return the name of a session within all sites. The default site has no prefix."""
    slug = make_site_key(site)
    return session if slug == DEFAULT_SITE else f"{slug}::{session}"


def make_site_key(site: str | None) -> str:
    """Return the name of a site as rows have it."""
    return "-".join((site or DEFAULT_SITE).lower().split()) or DEFAULT_SITE


def make_session_conversation_id(caller: Caller, session: str, site: str | None) -> str:
    """Return the id of the conversation of a user's session."""
    identity = json.dumps([caller.tenant, caller.user, make_session_key(session, site)])
    return f"pl-{hashlib.sha256(identity.encode()).hexdigest()[:21]}"


def open_session(resources: Resources, caller: Caller, session: str, site: str | None) -> DraftLocation:
    """Return where the draft of a session is. The first request of a session begins its conversation.

    Args:
        session: The session, as the client names it.
        site: The site, as the client names it; None for the default site.

    Raises:
        Gone: The conversation of the session was deleted.
        Forbidden: The caller's API key is not for the planner.
    """
    conversation_id = make_session_conversation_id(caller, session, site)
    try:
        get_conversation(resources, caller, conversation_id)
    except NotFound:
        title = make_session_key(session, site)
        create_conversation(resources, caller, PLANNER_SCOPE, title, None, "", conversation_id=conversation_id)
        _require_conversation(resources, caller, conversation_id)
    return DraftLocation(caller.tenant, conversation_id)


def find_session(resources: Resources, caller: Caller, session: str, site: str | None) -> DraftLocation | None:
    """Return where the draft of a session is, without beginning one; None for a session that is not there.

    Args:
        resources: Of the process.
        caller: The user of the session.
        session: As `open_session` takes it.
        site: As `open_session` takes it.
    """
    conversation_id = make_session_conversation_id(caller, session, site)
    try:
        get_conversation(resources, caller, conversation_id)
    except NotFound:
        return None
    return DraftLocation(caller.tenant, conversation_id)


def read_session_key(caller: Caller, conversation: Conversation) -> tuple[str, str] | None:
    """Return the session and the site of a conversation; None if it is none of a session, or was given another title.

    Args:
        caller: The user of the conversation.
        conversation: One of the planner.
    """
    site, _, session = conversation.title.rpartition("::")
    if conversation.id != make_session_conversation_id(caller, session, site):
        return None
    return session, make_site_key(site)


def open_counted_session(
    context: RequestContext, session: str, site: str | None, *, first_bytes: int = 0
) -> DraftLocation:
    """Return where the draft of a session is. What the request changes counts as bytes that its caller stores.

    Args:
        context: The request.
        session: As `open_session` takes it.
        site: As `open_session` takes it.
        first_bytes: What the request stores in a session that it begins. One that has no room for it is not begun.

    Raises:
        Gone, Forbidden: As `open_session`.
        TooManyRequests, PayloadTooLarge: There is no room for the first bytes.
    """
    if first_bytes and find_session(context.resources, context.caller, session, site) is None:
        counter = UseCounter(context.resources, context.caller, context.caller_limits, new_id())
        counter.require_room(Use(stored_bytes=first_bytes))
    location = open_session(context.resources, context.caller, session, site)
    return replace(location, count_bytes=partial(count_bytes, context))


def count_bytes(context: RequestContext, size: int) -> None:
    """Count bytes that a request stores.

    Raises:
        TooManyRequests: The user or the tenant has stored as many as may be stored in a day.
    """
    count_single_use(context.resources, context.caller, context.caller_limits, new_id(), Use(stored_bytes=size))


def count_prompt(context: RequestContext) -> None:
    """Count a request that asks a model.

    Raises:
        TooManyRequests: The user or the tenant has sent as many as may be sent.
    """
    count_single_use(context.resources, context.caller, context.caller_limits, new_id(), Use(prompts=1))


def _require_conversation(resources: Resources, caller: Caller, conversation_id: str) -> None:
    try:
        get_conversation(resources, caller, conversation_id)
    except NotFound as error:
        raise Gone(DELETED_SESSION) from error


def read_name(context: RequestContext, name: str) -> str | None:
    """Return a name of the query: a session, or a site. None if it is missing.

    Args:
        context: The request.
        name: The parameter.

    Raises:
        InvalidRequest: It is no name.
    """
    text = context.request.query.get(name)
    return text if text is None else require_name(text, name)


def require_name(text: str, name: str) -> str:
    """Return a session or a site as it was sent.

    Args:
        text: What was sent.
        name: The parameter.

    Raises:
        InvalidRequest: It is no name.
    """
    if not _NAME.fullmatch(text):
        raise InvalidRequest(f"'{name}' must be a name of letters, digits and ._:-")
    return text


def read_slug(context: RequestContext) -> str:
    """Return the slug of the query; the home page's if it is missing.

    Raises:
        InvalidRequest: It is too long.
    """
    slug = context.request.query.get("slug", HOME_SLUG)
    if len(slug) > MAX_SLUG_CHARACTERS:
        raise InvalidRequest(f"'slug' has at most {MAX_SLUG_CHARACTERS} characters.")
    return slug


def read_object(value: JsonOrText | None, name: str) -> Any:
    """Return the value of a member that holds JSON, or the text of it.

    Raises:
        InvalidRequest: The text is no JSON.
    """
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value) if value.strip() else None
    except (ValueError, RecursionError):
        return value if name.startswith(("site", "business")) else _refuse(name)


def _refuse(name: str) -> Any:
    raise InvalidRequest(f"invalid {name} payload")
