"""Conversations, defaults, the state of a turn and its cancelling; every path nobody else has."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import fermata
from fermata.aws import uploads
from fermata.aws.desk import Desk
from fermata.conversations import threads, views
from fermata.credentials import defaults, keyring
from fermata.tools import listing
from fermata.tools.catalogue import naming
from fermata.tools.names import Names
from fermata.turns import ending, looking, room
from fermata.usage import audit, balance, budgets
from fermata.wire import surface
from fermata.wire.bodies import ConversationChange, NewBudgets, NewConversation, NewDefault, NewLimits, NewUpload
from fermata.wire.edge import Visit, door
from fermata.wire.http import Answer, Request, whole_number
from fermata.wire.naming import tool_names
from fermata.words.conversation import Conversation
from fermata.words.errors import Invalid, NotFound
from fermata.words.scopes import SCOPES

PUBLIC = {"Cache-Control": "public, max-age=3600"}
PRIVATE = {"Cache-Control": "private, no-store"}
LISTED, MOST_LISTED = 200, 500
"""Conversations a page of the list has, and may have."""


def list_conversations(visit: Visit) -> Answer:
    """The first page has the contract's shape; `nextCursor` is there when there are more."""
    query = visit.request.query
    scope, limit = query.get("scope"), whole_number(visit.request, "limit", LISTED, most=MOST_LISTED)
    if scope not in SCOPES:
        raise Invalid(f"Name the 'scope' to list: one of {', '.join(SCOPES)}.")
    page = threads.newest(visit.desk, visit.caller, scope, cursor=query.get("cursor"), limit=max(1, limit))
    listed = {"conversations": _views(visit, page.conversations)}
    return Answer(200, listed | ({"nextCursor": page.cursor} if page.cursor else {}), PRIVATE)


def create_conversation(visit: Visit) -> Answer:
    body = visit.body(NewConversation)
    _known_credential(visit, body.credential_id)
    conversation = threads.create(
        visit.desk, visit.caller, body.scope, body.title, body.credential_id, body.model_id or ""
    )
    return Answer(201, {"conversation": threads.view(conversation)})


def show_conversation(visit: Visit) -> Answer:
    """With its newest messages; `nextCursor` is what `before` asks for the older ones with."""
    before = whole_number(visit.request, "before", 0) or None
    limit = max(1, whole_number(visit.request, "limit", views.MOST_LINES, most=views.MOST_LINES))
    conversation = threads.find(visit.desk, visit.caller, visit.request.params["id"])
    called = naming(conversation.scope, tool_names(visit))
    page = views.page(visit.desk, conversation, visit.tenant.dialect, called, before=before, limit=limit)
    shown = _views(visit, [conversation])[0] | {"messages": page.lines}
    if turn := looking.active_turn(visit.desk, conversation):
        shown["activeTurn"] = turn
    return Answer(200, {"conversation": shown} | ({"nextCursor": str(page.before)} if page.before else {}), PRIVATE)


def change_conversation(visit: Visit) -> Answer:
    """A turn that runs goes on with the model it was started with; the next one uses the new."""
    body = visit.body(ConversationChange)
    _known_credential(visit, body.credential_id)
    given = {"title": body.title, "credential_id": body.credential_id, "model_id": body.model_id}
    changed = threads.change(visit.desk, visit.caller, visit.request.params["id"], **given)
    return Answer(200, {"conversation": _views(visit, [changed])[0]})


def delete_conversation(visit: Visit) -> Answer:
    """Nobody will see a turn that still runs in it, so it ends."""
    removed = threads.remove(visit.desk, visit.caller, visit.request.params["id"])
    room.vacate(visit.desk, removed)
    return Answer(200, {"ok": True})


def _views(visit: Visit, conversations: Sequence[Conversation]) -> list[dict[str, Any]]:
    """A credential that was removed is none, so that whoever goes on picks another."""
    named = {one.credential_id for one in conversations if one.credential_id}
    known = keyring.existing(visit.desk, visit.caller.tenant, named)
    gone = {"credential_id": None}
    return [threads.view(one if one.credential_id in known else one.model_copy(update=gone)) for one in conversations]


def _known_credential(visit: Visit, credential_id: str | None) -> None:
    if credential_id and not keyring.existing(visit.desk, visit.caller.tenant, [credential_id]):
        raise Invalid("Credential not found. Pick an existing credential.")


def show_audit(visit: Visit) -> Answer:
    query = visit.request.query
    with_billable = query.get("billable") == "true"
    tenant = visit.caller.tenant
    found = audit.audit(visit.desk, tenant, query.get("since"), query.get("tz"), with_billable=with_billable)
    return Answer(200, found, PRIVATE)


def show_budgets(visit: Visit) -> Answer:
    return Answer(200, balance.balance(visit.desk, visit.caller.tenant), PRIVATE)


def set_budgets(visit: Visit) -> Answer:
    body = visit.body(NewBudgets)
    wanted = budgets.Budgets(
        tenant=_limits(body.tenant),
        each_user=_limits(body.each_user),
        users={user.user_id: _limits(user) for user in body.users},
    )
    budgets.set_budgets(visit.desk, visit.caller, wanted)
    return show_budgets(visit)


def _limits(body: NewLimits) -> budgets.Limits:
    """Exactly the digits that were sent."""
    daily, monthly = (None if usd is None else Decimal(str(usd)) for usd in (body.daily_usd, body.monthly_usd))
    return budgets.Limits(daily_usd=daily, monthly_usd=monthly)


def take_upload(visit: Visit) -> Answer:
    """An address in the bucket for what is announced; what is put there is checked when it is used."""
    body = visit.body(NewUpload)
    upload = uploads.announce(visit.desk, body.kind, body.size, body.sha256)
    told = {
        "ref": upload.ref,
        "method": "PUT",
        "url": uploads.address(visit.desk, visit.caller, upload),
        "headers": upload.headers_to_send,
        "urlExpiresAt": visit.desk.clock.instant(uploads.SIGNED_SECONDS),
        "refExpiresAt": visit.desk.clock.instant(uploads.KEPT_SECONDS),
    }
    return Answer(201, told, PRIVATE)


def list_tools(visit: Visit) -> Answer:
    caller, scope = visit.caller, visit.request.params["scope"]
    tools = listing.list_tools(scope, caller.capabilities, Names(tool_names(visit)), caller.tenant)
    return Answer(200, {"tools": tools}, PRIVATE)


def list_connectors(visit: Visit) -> Answer:
    """Instatic's admin asks for it unasked. There are no MCP connectors here."""
    return Answer(200, {"connectors": []})


def show_bridge(visit: Visit) -> Answer:
    return Answer(200, looking.look(visit.desk, visit.caller, visit.request.params["bridgeId"], tool_names(visit)))


def show_journal(visit: Visit) -> Answer:
    cursor = visit.request.query.get("cursor", "")
    bridge = visit.request.params["bridgeId"]
    return Answer(200, looking.edits(visit.desk, visit.caller, bridge, cursor, tool_names(visit)), PRIVATE)


def cancel_bridge(visit: Visit) -> Answer:
    return Answer(200, ending.cancel(visit.desk, visit.caller, visit.request.params["bridgeId"]))


def show_defaults(visit: Visit) -> Answer:
    return Answer(200, {"defaults": defaults.defaults_view(visit.desk, visit.caller.tenant)})


def set_default(visit: Visit) -> Answer:
    body = visit.body(NewDefault)
    scope = visit.request.params["scope"]
    default = defaults.set_default(visit.desk, visit.caller, scope, body.credential_id, body.model_id)
    return Answer(200, {"default": default.wire()})


def clear_default(visit: Visit) -> Answer:
    defaults.clear_default(visit.desk, visit.caller, visit.request.params["scope"])
    return Answer(204)


def known_scope(request: Request) -> None:
    defaults.known_scope(request.params["scope"])


def existing_scope(request: Request) -> None:
    if request.params["scope"] not in SCOPES:
        raise NotFound("Not found")


def health(desk: Desk) -> Answer:
    return Answer(200, {"ok": True})


def version(desk: Desk) -> Answer:
    return Answer(200, {"version": fermata.__version__, "stage": desk.settings.fermata_stage})


def describe(desk: Desk) -> Answer:
    """Loaded here, so that nobody else pays for it."""
    from fermata.wire import openapi

    return Answer(200, openapi.document(), PUBLIC)


ROUTES = (
    surface.LIST_CONVERSATIONS.to(list_conversations),
    surface.CREATE_CONVERSATION.to(create_conversation),
    surface.SHOW_CONVERSATION.to(show_conversation),
    surface.CHANGE_CONVERSATION.to(change_conversation),
    surface.DELETE_CONVERSATION.to(delete_conversation),
    surface.SHOW_AUDIT.to(show_audit),
    surface.SHOW_BUDGETS.to(show_budgets),
    surface.SET_BUDGETS.to(set_budgets),
    surface.TAKE_UPLOAD.to(take_upload),
    surface.LIST_TOOLS.to(list_tools, first=existing_scope),
    surface.LIST_CONNECTORS.to(list_connectors),
    surface.SHOW_DEFAULTS.to(show_defaults),
    surface.SET_DEFAULT.to(set_default, first=known_scope),
    surface.CLEAR_DEFAULT.to(clear_default, first=known_scope),
    surface.SHOW_TURN.to(show_bridge),
    surface.CANCEL_TURN.to(cancel_bridge),
    surface.SHOW_JOURNAL.to(show_journal),
    surface.SHOW_HEALTH.to(health),
    surface.SHOW_VERSION.to(version),
    surface.SHOW_HEALTH_HERE.to(health),
    surface.SHOW_VERSION_HERE.to(version),
    surface.SHOW_OPENAPI.to(describe),
)
handler = door(ROUTES)
