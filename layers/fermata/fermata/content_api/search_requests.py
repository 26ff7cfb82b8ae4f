"""Handle requests on content that ask models: they search a space, index it, and describe images."""

from collections.abc import Iterator
from contextlib import contextmanager

from fermata.aws.clock import new_id
from fermata.content.content_space import read_space
from fermata.content.search.lexical_embedding import LEXICAL_MODEL
from fermata.content.search.search_index import IndexMoved, IndexSettings, read_index_settings
from fermata.content.search.search_space import MAX_FOUND, search_space
from fermata.content.search.searchable_text import SEARCH_TYPES
from fermata.content_api.request_parts import count_body, locate_space, respond_with_version
from fermata.domain.errors import InvalidRequest, ProviderError, ServiceUnavailable
from fermata.limits.count_use import count_single_use
from fermata.limits.count_visitor import count_paid_search
from fermata.limits.usage_counters import Use
from fermata.turns.generate.describe_asset import describe_asset
from fermata.turns.generate.embed_texts import open_embedder
from fermata.turns.generate.unstored_turn import to_answer_error
from fermata.turns.index_content import choose_search_model, index_space_part
from fermata.wire.bodies.content_requests import AssetDescription, IndexStep, SearchModel
from fermata.wire.http.messages import Response, read_integer_parameter
from fermata.wire.http.routing import RequestContext

DEFAULT_FOUND = 10


def search_documents(context: RequestContext) -> Response:
    """Respond with the documents that match a query, the best first."""
    space, query = locate_space(context), context.request.query
    types = [query["type"]] if query.get("type") else []
    if unknown := [one for one in types if one not in SEARCH_TYPES]:
        raise InvalidRequest(f"'type' must be one of {', '.join(SEARCH_TYPES)}, not {unknown[0][:40]!r}.")
    limit = max(1, read_integer_parameter(context.request, "limit", DEFAULT_FOUND, maximum=MAX_FOUND))
    read_space(context.resources, space)
    with _answering_for_provider():
        embedder = open_embedder(context.resources, space, context.caller)
        if embedder.name != LEXICAL_MODEL:
            count_paid_search(context.resources, context.caller, context.caller_limits)
        found = search_space(
            context.resources, space, query.get("query", ""), embedder,
            types=[known for known in SEARCH_TYPES if known in types], limit=limit,
        )  # fmt: skip
    return Response(200, {"matches": [one.to_view() for one in found]})


def index_space(context: RequestContext) -> Response:
    """Index the next documents of a space."""
    body = context.parse_body(IndexStep) if context.request.body.strip() else IndexStep()
    # It may ask a provider, as a prompt does.
    count_single_use(context.resources, context.caller, context.caller_limits, new_id(), Use(prompts=1))
    with _answering_for_provider():
        part = index_space_part(context.resources, locate_space(context), context.caller, body.cursor, again=body.again)
    return Response(
        200, {"seen": part.seen, "written": part.written} | ({"cursor": part.cursor} if part.cursor else {})
    )


def show_search_model(context: RequestContext) -> Response:
    """Respond with the model of the search."""
    space = locate_space(context)
    read_space(context.resources, space)
    settings = read_index_settings(context.resources, space)
    return Response(200, {"credentialId": settings.credential, "modelId": settings.model})


def set_search_model(context: RequestContext) -> Response:
    """Choose the model of the search."""
    body = context.parse_body(SearchModel)
    count_body(context)
    if bool(body.credential_id) != bool(body.model_id):
        raise InvalidRequest("Name both 'credentialId' and 'modelId', or neither for the search without a provider.")
    with _answering_for_provider():
        choose_search_model(
            context.resources, locate_space(context), context.caller, IndexSettings(body.credential_id, body.model_id)
        )
    return show_search_model(context)


def describe_stored_asset(context: RequestContext) -> Response:
    """Let a model describe an image."""
    body = context.parse_body(AssetDescription) if context.request.body.strip() else AssetDescription()
    use = Use(prompts=1)
    count_single_use(context.resources, context.caller, context.caller_limits, new_id(), use)
    version = describe_asset(
        context.resources, locate_space(context), context.path_parameters["asset"], context.caller,
        credential=body.credential_id, model=body.model_id, locale=body.locale,
    )  # fmt: skip
    return respond_with_version(200, version.version, {"document": version.to_view()})


@contextmanager
def _answering_for_provider() -> Iterator[None]:
    """Raise the error with which the API answers for a provider."""
    try:
        yield
    except ProviderError as error:
        raise to_answer_error(error) from error
    except IndexMoved as error:
        raise ServiceUnavailable(f"{error} Try again.", retry_after=1) from error
