"""Build the OpenAPI document from the operations (wire/operations/surface.py) and the models of their bodies.

Functions import this module only when the document is requested, because it loads all models (decision 0026).
"""

import re
from collections.abc import Sequence
from functools import cache
from http import HTTPStatus

from pydantic import BaseModel

import fermata
from fermata.domain.agent_ids import build_scope_schema
from fermata.wire.bodies.responses import (
    agent_definitions,
    agents,
    api_keys,
    approvals,
    callbacks,
    chat_clients,
    cms_agent,
    common,
    content,
    content_delivery,
    content_forms,
    content_health,
    content_sync,
    conversations,
    credentials,
    defaults,
    editor,
    generate,
    mcp,
    openai,
    planner,
    privacy,
    remote_tools,
    studio,
    turns,
    usage,
    webhooks,
)
from fermata.wire.http.error_responses import DEFAULT_RETRY_AFTER_SECONDS
from fermata.wire.http.json_body import MAX_REQUEST_BYTES
from fermata.wire.openapi.schemas import (
    OPENAPI_DOCUMENT_SCHEMA,
    JsonObject,
    request_body_schemas,
    response_schemas,
    schema_reference,
    stream_event_schemas,
)
from fermata.wire.operations import surface
from fermata.wire.operations.operation import JSON_MEDIA_TYPE, BaseOperation, RequestParameter, SuccessResponse

_RESPONSE_MODULES = (
    agent_definitions, agents, api_keys, approvals, callbacks, chat_clients, cms_agent, common, content,
    content_delivery, content_forms, content_health, content_sync, conversations,
    credentials, defaults, editor, generate, mcp, openai, planner, privacy, remote_tools, studio, turns, usage,
    webhooks,
)  # fmt: skip
_ERROR_MODEL = "ErrorResponse"
_PATH_PARAMETER = re.compile(r"\{(\w+)\}")
_DESCRIPTION = """The agent backend for visual editors.

Errors are `{"error": …}`: a sentence that says what is wrong and what to do. A path that is not in this document
answers 404, a method that is not in it 405. `OPTIONS` is answered everywhere; an origin may call when it is one of the
tenant's. Every response carries `X-Request-Id`: that of the request, if it has one.
"""
_SECURITY_SCHEMES: JsonObject = {
    "bearer": {
        "type": "http",
        "scheme": "bearer",
        "bearerFormat": "JWT",
        "description": "A token that the tenant's own server signed. Its `capabilities` decide what the caller may do; "
        "where an operation names several, one of them is enough.",
    },
    "session": {
        "type": "apiKey",
        "in": "cookie",
        "name": "fermata_session",
        "description": "The same token in an HttpOnly cookie, also under the name `instatic_admin_session`. A request "
        "that is not a GET then needs an `Origin` of the tenant's.",
    },
}
_PATH_PARAMETERS: dict[str, tuple[str, JsonObject]] = {
    "scope": ("The assistant of this part of the editor, or an agent of the workspace.", build_scope_schema()),
    "bridgeId": ("The turn's bridge, as the stream's first event names it.", {"type": "string", "minLength": 1}),
    "messageId": ("The message's id.", {"type": "string", "minLength": 1}),
    "index": ("The image's place in the message's content.", {"type": "string", "pattern": "^[0-9]{1,3}$"}),
    "id": ("The id.", {"type": "string", "minLength": 1}),
}
"""Path parameters that several operations have. An operation may describe others in `parameters`."""
_UNDESCRIBED_PARAMETER: tuple[str, JsonObject] = ("A segment of the path.", {"type": "string"})
_REQUEST_ID_HEADER: JsonObject = {
    "required": True,
    "description": "Name it when you report a problem.",
    "schema": {"type": "string"},
}
_RETRY_AFTER_HEADER: JsonObject = {
    "required": True,
    "description": "Seconds to wait.",
    "schema": {"type": "integer", "minimum": 1},
}
_RETRY_AFTER_OF_CONFLICT = _RETRY_AFTER_HEADER | {
    "required": False,
    "description": "Seconds to wait. Missing where waiting does not help.",
}
_ERRORS_OF_EVERY_OPERATION = {
    413: f"The request has more than {MAX_REQUEST_BYTES:,} bytes, or more than the gateway takes.",
    429: "Too many requests at once.",
    500: "A fault of the service.",
    502: "The service could not answer.",
    503: "The service is busy. The same request may succeed in a moment.",
    504: "The service took too long to answer.",
}
"""API Gateway itself responds with 429, 502 and 504, and with 413 whether an operation has a body or not."""
_ERRORS_OF_AUTHENTICATION = {
    401: "There is no valid token.",
    403: "The caller has none of the capabilities, or the Origin is wrong.",
}
_BODY_ERROR = {400: "The body is not as described."}
_QUERY_ERROR = {400: "The query is not as described."}


@cache
def get_openapi_document() -> JsonObject:
    """Return the document of all operations. It is built once per process."""
    return build_openapi_document(surface.OPERATIONS)


def build_openapi_document(operations: Sequence[BaseOperation]) -> JsonObject:
    """Build the OpenAPI document of some operations."""
    return {
        "openapi": "3.1.0",
        "info": {"title": "Fermata", "version": fermata.__version__, "description": _DESCRIPTION},
        "servers": [
            {"url": "../../..", "description": "The document's own address without /admin/api/ai/openapi.json."}
        ],
        "paths": _paths(operations),
        "components": {
            "schemas": _schemas(operations),
            "responses": _shared_errors(),
            "securitySchemes": _SECURITY_SCHEMES,
        },
    }


def _paths(operations: Sequence[BaseOperation]) -> JsonObject:
    paths: JsonObject = {}
    for operation in operations:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _operation(operation)
    return paths


def _operation(operation: BaseOperation) -> JsonObject:
    document: JsonObject = {
        "operationId": operation.name,
        "summary": operation.summary,
        "parameters": [*_path_parameters(operation), *map(_parameter, operation.parameters)],
        "responses": {str(response.status): _success(response) for response in operation.responses}
        | _errors(operation),
        "security": [{scheme: [capability]} for capability in operation.capabilities for scheme in _SECURITY_SCHEMES],
    }
    if operation.description:
        document["description"] = operation.description
    if operation.body:
        content = {JSON_MEDIA_TYPE: {"schema": schema_reference(operation.body.__name__)}}
        document["requestBody"] = {"required": operation.requires_body, "content": content}
    return document


def _path_parameters(operation: BaseOperation) -> list[JsonObject]:
    described = {parameter.name for parameter in operation.parameters if parameter.location == "path"}
    names = [name for name in _PATH_PARAMETER.findall(operation.path) if name not in described]
    described_here = [_PATH_PARAMETERS.get(name, _UNDESCRIBED_PARAMETER) for name in names]
    return [
        _parameter(RequestParameter(name, description, schema, True, "path"))
        for name, (description, schema) in zip(names, described_here, strict=True)
    ]


def _parameter(parameter: RequestParameter) -> JsonObject:
    return {
        "name": parameter.name,
        "in": parameter.location,
        "required": parameter.required,
        "description": parameter.description,
        "schema": dict(parameter.schema),
    }


def _success(response: SuccessResponse) -> JsonObject:
    document: JsonObject = {"description": response.description, "headers": {"X-Request-Id": _REQUEST_ID_HEADER}}
    if response.status in (204, 302):
        return document
    if not response.model:
        return document | {"content": {response.media_type: {}}}
    name = _model_name(response.model)
    if response.media_type == JSON_MEDIA_TYPE:
        streamed: JsonObject = {response.stream_media_type: {}} if response.stream_media_type else {}
        return document | {"content": {JSON_MEDIA_TYPE: {"schema": schema_reference(name)}, **streamed}}
    # OpenAPI 3.1 cannot describe one schema per line, so an extension refers to it (decision 0026).
    description = f"JSON, one `{name}` a line; every line ends with LF."
    lines = {"schema": {"type": "string", "description": description}, "x-line-schema": schema_reference(name)}
    return document | {"content": {response.media_type: lines}}


def _errors(operation: BaseOperation) -> JsonObject:
    has_query = any(parameter.location == "query" for parameter in operation.parameters)
    own_errors = (_QUERY_ERROR if has_query else {}) | (_BODY_ERROR if operation.body else {}) | dict(operation.errors)
    shared_errors = _ERRORS_OF_EVERY_OPERATION | (_ERRORS_OF_AUTHENTICATION if operation.capabilities else {})
    if operation.error_model != _ERROR_MODEL:
        own_errors, shared_errors = shared_errors | own_errors, {}
    documents = {status: {"$ref": f"#/components/responses/{_error_name(status)}"} for status in shared_errors}
    documents |= {
        status: _error(status, description, operation.error_model) for status, description in own_errors.items()
    }
    return {str(status): documents[status] for status in sorted(documents)}


def _shared_errors() -> JsonObject:
    errors = sorted((_ERRORS_OF_EVERY_OPERATION | _ERRORS_OF_AUTHENTICATION).items())
    return {_error_name(status): _error(status, description) for status, description in errors}


def _error_name(status: int) -> str:
    # The phrase of 413 depends on the version of Python.
    return "TooLarge" if status == 413 else HTTPStatus(status).phrase.replace(" ", "")


def _error(status: int, description: str, model: str = _ERROR_MODEL) -> JsonObject:
    if status == 304:
        return {"description": description, "headers": {"X-Request-Id": _REQUEST_ID_HEADER}}
    return {
        "description": description,
        "headers": {"X-Request-Id": _REQUEST_ID_HEADER} | _retry_after_header(status),
        "content": {JSON_MEDIA_TYPE: {"schema": schema_reference(model)}},
    }


def _retry_after_header(status: int) -> JsonObject:
    if status in DEFAULT_RETRY_AFTER_SECONDS:
        return {"Retry-After": _RETRY_AFTER_HEADER}
    return {"Retry-After": _RETRY_AFTER_OF_CONFLICT} if status == HTTPStatus.CONFLICT else {}


def _schemas(operations: Sequence[BaseOperation]) -> JsonObject:
    bodies = {operation.body for operation in operations if operation.body}
    models = {_load_model(operation.error_model) for operation in operations} | {common.ErrorResponse}
    models |= {
        _load_model(response.model)
        for operation in operations
        for response in operation.responses
        if response.media_type == JSON_MEDIA_TYPE and response.model not in ("", "Document")
    }
    schemas = request_body_schemas(_sort_by_name(bodies)) | response_schemas(_sort_by_name(models))
    schemas |= stream_event_schemas() | {"Document": OPENAPI_DOCUMENT_SCHEMA}
    return dict(sorted(schemas.items()))


def _sort_by_name(models: set[type[BaseModel]]) -> list[type[BaseModel]]:
    return sorted(models, key=lambda model: model.__name__)


def _model_name(model: type[BaseModel] | str) -> str:
    return model if isinstance(model, str) else model.__name__


def _load_model(model: type[BaseModel] | str) -> type[BaseModel]:
    if not isinstance(model, str):
        return model
    found: list[type[BaseModel]] = [getattr(module, model) for module in _RESPONSE_MODULES if hasattr(module, model)]
    if not found:
        raise LookupError(f"No module of _RESPONSE_MODULES defines {model}: add the one that does.")
    return found[0]
