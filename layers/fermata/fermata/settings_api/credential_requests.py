"""Handle requests on the credentials of providers, and list the models that one opens."""

from fermata.credentials import credential_store, credential_views, initial_defaults, model_list
from fermata.domain.errors import InvalidRequest
from fermata.wire.bodies.requests import CredentialChange, NewCredential
from fermata.wire.http.messages import Response
from fermata.wire.http.routing import RequestContext, Router
from fermata.wire.operations import credentials

CREDENTIAL_ROUTES = Router("credentials")


@CREDENTIAL_ROUTES.handles(credentials.LIST_CREDENTIALS)
def _list_credentials(context: RequestContext) -> Response:
    return Response(200, {"credentials": credential_views.list_credential_views(context.resources, context.caller)})


@CREDENTIAL_ROUTES.handles(credentials.CREATE_CREDENTIAL)
def _create_credential(context: RequestContext) -> Response:
    body = context.parse_body(NewCredential)
    credential = credential_store.create_credential(
        context.resources,
        context.caller,
        body.provider_id,
        body.auth_mode,
        body.display_label,
        body.api_key,
        body.base_url,
    )
    initial_defaults.set_missing_defaults(context.resources, context.caller, credential)
    return Response(201, {"credential": credential_views.get_credential_view(context.resources, credential)})


@CREDENTIAL_ROUTES.handles(credentials.SHOW_CREDENTIAL)
def _show_credential(context: RequestContext) -> Response:
    credential = credential_store.get_own_credential(context.resources, context.caller, context.path_parameters["id"])
    return Response(200, {"credential": credential_views.get_credential_view(context.resources, credential)})


@CREDENTIAL_ROUTES.handles(credentials.CHANGE_CREDENTIAL)
def _change_credential(context: RequestContext) -> Response:
    body = context.parse_body(CredentialChange)
    credential = credential_store.update_credential(
        context.resources,
        context.caller,
        context.path_parameters["id"],
        body.display_label,
        body.api_key,
        body.base_url,
    )
    return Response(200, {"credential": credential_views.get_credential_view(context.resources, credential)})


@CREDENTIAL_ROUTES.handles(credentials.DELETE_CREDENTIAL)
def _delete_credential(context: RequestContext) -> Response:
    credential_store.delete_credential(context.resources, context.caller, context.path_parameters["id"])
    return Response(200, {"ok": True})


@CREDENTIAL_ROUTES.handles(credentials.TRY_CREDENTIAL)
def _try_credential(context: RequestContext) -> Response:
    return Response(200, model_list.try_credential(context.resources, context.caller, context.path_parameters["id"]))


@CREDENTIAL_ROUTES.handles(credentials.LIST_MODELS)
def _list_models(context: RequestContext) -> Response:
    credential_id = context.request.query.get("credentialId")
    if not credential_id:
        raise InvalidRequest("Name the credential whose models you want: ?credentialId=…")
    models = model_list.list_credential_models(
        context.resources, context.caller, context.path_parameters["id"], credential_id
    )
    return Response(200, {"models": [model.to_wire() for model in models]})
