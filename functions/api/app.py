"""Conversations, defaults, the state of a turn and its cancelling; every path nobody else has."""

import fermata
from fermata.aws.desk import Desk
from fermata.conversations import threads, views
from fermata.credentials import defaults
from fermata.turns import ending, looking
from fermata.wire.bodies import NewConversation, NewDefault
from fermata.wire.edge import PublicRoute, Route, Visit, door
from fermata.wire.http import Answer, Request, read_body
from fermata.words.caller import Capability

CHAT, PROVIDERS, TURNS = Capability.CHAT, Capability.PROVIDERS, Capability.TURNS
AI = "/admin/api/ai"


def create_conversation(visit: Visit) -> Answer:
    body = read_body(visit.request, NewConversation)
    conversation = threads.create(
        visit.desk, visit.caller, body.scope, body.title, body.credential_id, body.model_id or ""
    )
    return Answer(201, {"conversation": threads.view(conversation)})


def show_conversation(visit: Visit) -> Answer:
    conversation = threads.find(visit.desk, visit.caller, visit.request.params["id"])
    shown = threads.view(conversation)
    shown["messages"] = views.page(visit.desk, conversation, visit.tenant.dialect).lines
    if turn := looking.active_turn(visit.desk, conversation):
        shown["activeTurn"] = turn
    return Answer(200, {"conversation": shown}, {"Cache-Control": "private, no-store"})


def show_bridge(visit: Visit) -> Answer:
    return Answer(200, looking.look(visit.desk, visit.caller, visit.request.params["bridgeId"]))


def cancel_bridge(visit: Visit) -> Answer:
    return Answer(200, ending.cancel(visit.desk, visit.caller, visit.request.params["bridgeId"]))


def show_defaults(visit: Visit) -> Answer:
    return Answer(200, {"defaults": defaults.defaults_view(visit.desk, visit.caller.tenant)})


def set_default(visit: Visit) -> Answer:
    body = read_body(visit.request, NewDefault)
    scope = visit.request.params["scope"]
    default = defaults.set_default(visit.desk, visit.caller, scope, body.credential_id, body.model_id)
    return Answer(200, {"default": default.wire()})


def clear_default(visit: Visit) -> Answer:
    defaults.clear_default(visit.desk, visit.caller, visit.request.params["scope"])
    return Answer(204)


def known_scope(request: Request) -> None:
    defaults.known_scope(request.params["scope"])


def health(desk: Desk) -> Answer:
    return Answer(200, {"ok": True})


def version(desk: Desk) -> Answer:
    return Answer(200, {"version": fermata.__version__, "stage": desk.settings.fermata_stage})


ROUTES = (
    Route("POST", f"{AI}/conversations", create_conversation, (CHAT,)),
    Route("GET", f"{AI}/conversations/{{id}}", show_conversation, (CHAT,)),
    Route("GET", f"{AI}/defaults", show_defaults, (CHAT,)),
    Route("PUT", f"{AI}/defaults/{{scope}}", set_default, (PROVIDERS,), first=known_scope),
    Route("DELETE", f"{AI}/defaults/{{scope}}", clear_default, (PROVIDERS,), first=known_scope),
    Route("GET", f"{AI}/bridges/{{bridgeId}}", show_bridge, (CHAT, TURNS)),
    Route("POST", f"{AI}/bridges/{{bridgeId}}/cancel", cancel_bridge, (CHAT, TURNS)),
    PublicRoute("GET", "/healthz", health),
    PublicRoute("GET", "/version", version),
)
handler = door(ROUTES)
