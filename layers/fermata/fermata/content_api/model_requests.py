"""Handle requests on spaces and their models."""

from typing import Any

from fermata.content.content_space import ContentSpace, SpaceKey, list_spaces, read_space
from fermata.content.documents.read_document import ModelState
from fermata.content.model_store import create_space, delete_model, list_content_models, put_model, read_model
from fermata.content.space_rights import list_space_rights
from fermata.content_api.request_parts import (
    count_body,
    locate_space,
    make_author,
    read_options,
    respond_with_version,
)
from fermata.domain.errors import InvalidRequest
from fermata.domain.surrogates_and_infinities import to_storable_json
from fermata.wire.bodies.content_requests import ModelDefinition, NewSpace
from fermata.wire.http.messages import Response
from fermata.wire.http.routing import RequestContext
from fermata.wire.operations.content_forms import SHOW_FORM


def list_content_spaces(context: RequestContext) -> Response:
    """Respond with the spaces of the caller's tenant, and what the caller may do in each."""
    spaces = list_spaces(context.resources, context.caller.tenant)
    rights = list_space_rights(context.resources, context.caller, [key for key, _ in spaces])
    views = [record.to_view(key) | rights[key] for key, record in spaces]
    return Response(200, {"spaces": views}, {"Cache-Control": "private, no-store"})


def create_content_space(context: RequestContext) -> Response:
    """Create a space."""
    body = context.parse_body(NewSpace)
    count_body(context)
    key = SpaceKey(context.caller.tenant, body.site, body.environment)
    record = ContentSpace(title=to_storable_json(body.title), locales=tuple(body.locales), domain=body.domain)
    created = create_space(context.resources, key, record, make_author(context))
    return Response(201, {"space": created.to_view(key)})


def list_space_models(context: RequestContext) -> Response:
    """Respond with the models of a space."""
    space = locate_space(context)
    read_space(context.resources, space)
    states = list_content_models(context.resources, space)
    return Response(200, {"models": [_to_model_view(space, state) for state in states]})


def show_content_model(context: RequestContext) -> Response:
    """Respond with a model."""
    space = locate_space(context)
    state = read_model(context.resources, space, context.path_parameters["model"])
    return respond_with_version(200, state.version, {"model": _to_model_view(space, state)})


def put_content_model(context: RequestContext) -> Response:
    """Create or change a model."""
    body, space = context.parse_body(ModelDefinition), locate_space(context)
    definition = to_storable_json(body.model_dump(by_alias=True)) | {"id": context.path_parameters["model"]}
    if "form" not in body.model_fields_set:
        del definition["form"]
    breaking = context.request.query.get("breaking")
    if breaking not in (None, "refuse"):
        raise InvalidRequest("'breaking' must be refuse, or left out.")
    author, options = make_author(context), read_options(context)
    refuses = breaking is not None
    put_model(context.resources, space, definition, author, options, keeps_unsaid=True, refuses_breaking=refuses)
    return show_content_model(context)


def remove_content_model(context: RequestContext) -> Response:
    """Delete a model."""
    space, model = locate_space(context), context.path_parameters["model"]
    delete_model(context.resources, space, model, make_author(context), read_options(context))
    return Response(200, {"ok": True})


def _to_model_view(space: SpaceKey, state: ModelState) -> dict[str, Any]:
    own, names = state.model.to_wire(), {"site": space.site, "environment": space.environment, "model": state.model.id}
    form = {"formPath": SHOW_FORM.path.format(workspace=space.tenant, **names)} if own.get("form") else {}
    return {**own, **form, "version": state.version, "documents": state.documents}
