"""Seals provider keys, tells which models they open, and never shows one."""

from fermata.credentials import keyring, models, seeding, using
from fermata.wire import surface
from fermata.wire.bodies import CredentialChange, NewCredential
from fermata.wire.edge import Visit, door
from fermata.wire.http import Answer
from fermata.words.errors import Invalid


def list_credentials(visit: Visit) -> Answer:
    return Answer(200, {"credentials": using.views(visit.desk, visit.caller)})


def create_credential(visit: Visit) -> Answer:
    body = visit.body(NewCredential)
    form = (body.provider_id, body.auth_mode, body.display_label, body.api_key, body.base_url)
    credential = keyring.create(visit.desk, visit.caller, *form)
    seeding.fill_empty_defaults(visit.desk, visit.caller, credential)
    return Answer(201, {"credential": using.view(visit.desk, credential)})


def show_credential(visit: Visit) -> Answer:
    credential = keyring.own(visit.desk, visit.caller, visit.request.params["id"])
    return Answer(200, {"credential": using.view(visit.desk, credential)})


def change_credential(visit: Visit) -> Answer:
    body = visit.body(CredentialChange)
    changes = (body.display_label, body.api_key, body.base_url)
    credential = keyring.change(visit.desk, visit.caller, visit.request.params["id"], *changes)
    return Answer(200, {"credential": using.view(visit.desk, credential)})


def remove_credential(visit: Visit) -> Answer:
    keyring.remove(visit.desk, visit.caller, visit.request.params["id"])
    return Answer(200, {"ok": True})


def test_credential(visit: Visit) -> Answer:
    return Answer(200, models.try_out(visit.desk, visit.caller, visit.request.params["id"]))


def list_models(visit: Visit) -> Answer:
    credential = visit.request.query.get("credentialId")
    if not credential:
        raise Invalid("Name the credential whose models you want: ?credentialId=…")
    found = models.of_credential(visit.desk, visit.caller, visit.request.params["id"], credential)
    return Answer(200, {"models": [model.wire() for model in found]})


ROUTES = (
    surface.LIST_CREDENTIALS.to(list_credentials),
    surface.CREATE_CREDENTIAL.to(create_credential),
    surface.SHOW_CREDENTIAL.to(show_credential),
    surface.CHANGE_CREDENTIAL.to(change_credential),
    surface.DELETE_CREDENTIAL.to(remove_credential),
    surface.TRY_CREDENTIAL.to(test_credential),
    surface.LIST_MODELS.to(list_models),
)
handler = door(ROUTES)
