"""Build the OpenAPI document from the operations (wire/operations/surface.py) and the models of their bodies.

Only whoever asks for it pays for it: no door imports this before.
"""

import re
from functools import cache
from http import HTTPStatus
from typing import Any

import fermata
from fermata.domain.scopes import SCOPES
from fermata.wire.http.error_responses import DEFAULT_RETRY_AFTER_SECONDS
from fermata.wire.http.messages import MAX_REQUEST_BYTES
from fermata.wire.openapi import schemas
from fermata.wire.operations import surface
from fermata.wire.operations.operation import JSON_MEDIA_TYPE, BaseOperation, RequestParameter, SuccessResponse

Part = dict[str, Any]
STEP = re.compile(r"\{(\w+)\}")
ABOUT = """The agent backend for visual editors.

Errors are `{"error": …}`: a sentence that says what is wrong and what to do. A path that is not here answers 404, a
method that is not here 405. `OPTIONS` is answered everywhere; an origin may call when it is one of the tenant's.
Every answer carries `X-Request-Id`: yours, when you sent one.
"""
SCHEMES: Part = {
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
        "description": "The same token in an HttpOnly cookie; `instatic_admin_session` does as well. Whatever is not a "
        "GET needs an `Origin` of the tenant's then.",
    },
}
STEPS: dict[str, tuple[str, Part]] = {
    "scope": ("Where in the editor.", {"type": "string", "enum": list(SCOPES)}),
    "bridgeId": ("The turn's bridge, as the stream's first event names it.", {"type": "string", "minLength": 1}),
    "messageId": ("The message's id.", {"type": "string", "minLength": 1}),
    "index": ("The image's place in the message's content.", {"type": "string", "pattern": "^[0-9]{1,3}$"}),
    "id": ("The id.", {"type": "string", "minLength": 1}),
}
REQUEST_ID: Part = {"required": True, "description": "Name it when you report a problem.", "schema": {"type": "string"}}
RETRY: Part = {"required": True, "description": "Seconds to wait.", "schema": {"type": "integer", "minimum": 1}}
ANY_OPERATION = {
    413: f"The request has more than {MAX_REQUEST_BYTES:,} bytes, or more than the gateway takes.",
    429: "Too many requests at once.",
    500: "A mistake of ours.",
    502: "The service could not answer.",
    503: "Something is busy. The same request may succeed in a moment.",
    504: "The service took too long to answer.",
}
"""429, 502 and 504 are the gateway's own: it gives them before or after any function is asked. So it does 413, whether
the operation reads a body or not."""
ANY_CALLER = {401: "There is no valid token.", 403: "The caller has none of the capabilities, or the Origin is wrong."}
ANY_BODY = {400: "The body is not as described."}
ANY_QUERY = {400: "The query is not as described."}


@cache
def build_openapi_document() -> Part:
    return {
        "openapi": "3.1.0",
        "info": {"title": "Fermata", "version": fermata.__version__, "description": ABOUT},
        "servers": [{"url": "../../..", "description": "Where this document is, without /admin/api/ai/openapi.json."}],
        "paths": _paths(),
        "components": {"schemas": _schemas(), "responses": _shared_refusals(), "securitySchemes": SCHEMES},
    }


def _paths() -> Part:
    paths: Part = {}
    for operation in surface.OPERATIONS:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _operation(operation)
    return paths


def _operation(operation: BaseOperation) -> Part:
    told: Part = {
        "operationId": operation.name,
        "summary": operation.summary,
        "parameters": _steps(operation.path) + [_parameter(given) for given in operation.parameters],
        "responses": {str(told.status): _told(told) for told in operation.responses} | _refusals(operation),
        "security": [{scheme: [need]} for need in operation.needs for scheme in SCHEMES],
    }
    if operation.description:
        told["description"] = operation.description
    if operation.body:
        content = {JSON_MEDIA_TYPE: {"schema": schemas.schema_reference(operation.body.__name__)}}
        told["requestBody"] = {"required": operation.requires_body, "content": content}
    return told


def _steps(path: str) -> list[Part]:
    found = [(name, *STEPS[name]) for name in STEP.findall(path)]
    return [
        {"name": name, "in": "path", "required": True, "description": says, "schema": schema}
        for name, says, schema in found
    ]


def _parameter(given: RequestParameter) -> Part:
    shown = {"name": given.name, "in": given.location, "required": given.required}
    return shown | {"description": given.description, "schema": dict(given.schema)}


def _told(told: SuccessResponse) -> Part:
    answer: Part = {"description": told.description, "headers": {"X-Request-Id": REQUEST_ID}}
    if told.status == 204:
        return answer
    if told.media_type == JSON_MEDIA_TYPE:
        return answer | {"content": {JSON_MEDIA_TYPE: {"schema": schemas.schema_reference(told.model)}}}
    if not told.model:
        return answer | {"content": {told.media_type: {}}}
    says = f"JSON, one `{told.model}` a line; every line ends with LF."
    lines = {"schema": {"type": "string", "description": says}, "x-line-schema": schemas.schema_reference(told.model)}
    return answer | {"content": {told.media_type: lines}}


def _refusals(operation: BaseOperation) -> Part:
    own = dict(ANY_QUERY) if any(given.location == "query" for given in operation.parameters) else {}
    own |= (ANY_BODY if operation.body else {}) | dict(operation.errors)
    shared = ANY_OPERATION | (ANY_CALLER if operation.needs else {})
    refused = {status: {"$ref": f"#/components/responses/{_name(status)}"} for status in shared}
    refused |= {status: _refusal(status, text) for status, text in own.items()}
    return {str(status): refused[status] for status in sorted(refused)}


def _shared_refusals() -> Part:
    return {_name(status): _refusal(status, says) for status, says in sorted((ANY_OPERATION | ANY_CALLER).items())}


def _name(status: int) -> str:
    # What 413 is called depends on the version of Python.
    return "TooLarge" if status == 413 else HTTPStatus(status).phrase.replace(" ", "")


def _refusal(status: int, says: str) -> Part:
    headers = {"X-Request-Id": REQUEST_ID} | ({"Retry-After": RETRY} if status in DEFAULT_RETRY_AFTER_SECONDS else {})
    return {
        "description": says,
        "headers": headers,
        "content": {JSON_MEDIA_TYPE: {"schema": schemas.schema_reference("ErrorResponse")}},
    }


def _schemas() -> Part:
    bodies = {operation.body for operation in surface.OPERATIONS if operation.body}
    told = {
        answer.model
        for operation in surface.OPERATIONS
        for answer in operation.responses
        if answer.media_type == JSON_MEDIA_TYPE
    }
    answers = schemas.response_schemas(sorted({*told, "ErrorResponse"} - {"", "Document"}))
    found = (
        schemas.request_body_schemas(sorted(bodies, key=lambda model: model.__name__))
        | answers
        | schemas.stream_event_schemas()
    )
    return dict(sorted((found | {"Document": schemas.OPENAPI_DOCUMENT_SCHEMA}).items()))
