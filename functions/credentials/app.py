"""Seals provider keys and lists them without ever showing one."""

from fermata.credentials import keyring
from fermata.wire.bodies import CredentialChange, NewCredential
from fermata.wire.edge import Route, Visit, door
from fermata.wire.http import Answer, read_body
from fermata.words.caller import Capability

CREDENTIALS = "/admin/api/ai/credentials"
NEEDS = (Capability.PROVIDERS,)


def list_credentials(visit: Visit) -> Answer:
    key_id = visit.desk.settings.key_id
    own = keyring.of_caller(visit.desk, visit.caller)
    return Answer(200, {"credentials": [credential.view(key_id) for credential in own]})


def create_credential(visit: Visit) -> Answer:
    body = read_body(visit.request, NewCredential)
    credential = keyring.create(
        visit.desk, visit.caller, body.provider_id, body.auth_mode, body.display_label, body.api_key
    )
    return Answer(201, {"credential": credential.view(visit.desk.settings.key_id)})


def show_credential(visit: Visit) -> Answer:
    credential = keyring.own(visit.desk, visit.caller, visit.request.params["id"])
    return Answer(200, {"credential": credential.view(visit.desk.settings.key_id)})


def change_credential(visit: Visit) -> Answer:
    body = read_body(visit.request, CredentialChange)
    identity = visit.request.params["id"]
    credential = keyring.change(visit.desk, visit.caller, identity, body.display_label, body.api_key)
    return Answer(200, {"credential": credential.view(visit.desk.settings.key_id)})


def remove_credential(visit: Visit) -> Answer:
    keyring.remove(visit.desk, visit.caller, visit.request.params["id"])
    return Answer(200, {"ok": True})


ROUTES = (
    Route("GET", CREDENTIALS, list_credentials, NEEDS),
    Route("POST", CREDENTIALS, create_credential, NEEDS),
    Route("GET", f"{CREDENTIALS}/{{id}}", show_credential, NEEDS),
    Route("PUT", f"{CREDENTIALS}/{{id}}", change_credential, NEEDS),
    Route("DELETE", f"{CREDENTIALS}/{{id}}", remove_credential, NEEDS),
)
handler = door(ROUTES)
