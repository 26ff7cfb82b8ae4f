"""Seals provider keys, tells which models they open, and never shows one."""

from fermata.credentials import credential_store, initial_defaults, last_used, model_list
from fermata.domain.errors import InvalidRequest
from fermata.wire.bodies.requests import CredentialChange, NewCredential
from fermata.wire.http.dispatch import RequestContext, make_handler
from fermata.wire.http.messages import Response
from fermata.wire.operations import surface


def list_credentials(visit: RequestContext) -> Response:
    return Response(200, {"credentials": last_used.list_credential_views(visit.resources, visit.caller)})


def create_credential(visit: RequestContext) -> Response:
    body = visit.parse_body(NewCredential)
    form = (body.provider_id, body.auth_mode, body.display_label, body.api_key, body.base_url)
    credential = credential_store.create_credential(visit.resources, visit.caller, *form)
    initial_defaults.set_missing_defaults(visit.resources, visit.caller, credential)
    return Response(201, {"credential": last_used.get_credential_view(visit.resources, credential)})


def show_credential(visit: RequestContext) -> Response:
    credential = credential_store.get_own_credential(visit.resources, visit.caller, visit.request.path_parameters["id"])
    return Response(200, {"credential": last_used.get_credential_view(visit.resources, credential)})


def change_credential(visit: RequestContext) -> Response:
    body = visit.parse_body(CredentialChange)
    changes = (body.display_label, body.api_key, body.base_url)
    credential = credential_store.update_credential(
        visit.resources, visit.caller, visit.request.path_parameters["id"], *changes
    )
    return Response(200, {"credential": last_used.get_credential_view(visit.resources, credential)})


def delete_credential(visit: RequestContext) -> Response:
    credential_store.delete_credential(visit.resources, visit.caller, visit.request.path_parameters["id"])
    return Response(200, {"ok": True})


def test_credential(visit: RequestContext) -> Response:
    return Response(200, model_list.try_credential(visit.resources, visit.caller, visit.request.path_parameters["id"]))


def list_models(visit: RequestContext) -> Response:
    credential = visit.request.query.get("credentialId")
    if not credential:
        raise InvalidRequest("Name the credential whose models you want: ?credentialId=…")
    found = model_list.list_credential_models(
        visit.resources, visit.caller, visit.request.path_parameters["id"], credential
    )
    return Response(200, {"models": [model.to_wire() for model in found]})


ROUTES = (
    surface.LIST_CREDENTIALS.to(list_credentials),
    surface.CREATE_CREDENTIAL.to(create_credential),
    surface.SHOW_CREDENTIAL.to(show_credential),
    surface.CHANGE_CREDENTIAL.to(change_credential),
    surface.DELETE_CREDENTIAL.to(delete_credential),
    surface.TRY_CREDENTIAL.to(test_credential),
    surface.LIST_MODELS.to(list_models),
)
handler = make_handler(ROUTES)
