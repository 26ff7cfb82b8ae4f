"""The OpenAPI document: valid, complete, and the same as what the functions handle."""

import json
import subprocess
import sys
from typing import Any

import pytest
from schemathesis.core.result import Ok

from fermata.domain import events
from fermata.domain.dialect import Dialect
from fermata.wire.http.dispatch import handle_request
from fermata.wire.http.error_responses import DEFAULT_RETRY_AFTER_SECONDS
from fermata.wire.http.messages import HttpRequest
from fermata.wire.openapi import document
from fermata.wire.operations import surface
from fermata.wire.operations.service import SHOW_OPENAPI
from fermata.wire.renderers import ndjson
from functions.api import app as api
from tests.template import templates
from tests.unit.openapi.schemathesis_schema import STREAM_LINE_VALIDATOR, schema
from tests.unit.openapi.service import ROUTES, Service
from tests.unit.wire.event_samples import EVENT_SAMPLES

DOCUMENT = document.get_openapi_document()
OPERATIONS = {
    f"{method.upper()} {path}": operation
    for path, methods in DOCUMENT["paths"].items()
    for method, operation in methods.items()
}


def test_the_document_is_valid_and_every_reference_resolves() -> None:
    schema.validate()
    operations = [operation.ok() for operation in schema.get_all_operations() if isinstance(operation, Ok)]
    assert [operation.label for operation in operations] == list(OPERATIONS)


def test_every_operation_has_one_handler_and_there_are_no_others() -> None:
    bound_operations = {route.operation.name: route.operation for route in ROUTES}
    assert bound_operations == {operation.name: operation for operation in surface.OPERATIONS}
    assert len(ROUTES) == len(surface.OPERATIONS)


def test_every_operation_has_a_name_of_its_own() -> None:
    names = [operation["operationId"] for operation in OPERATIONS.values()]
    assert len(set(names)) == len(names) == len(surface.OPERATIONS)


def test_the_document_is_public_and_cacheable_for_an_hour(service: Service) -> None:
    answer = handle_request(service.resources, api.router.routes, HttpRequest("r", "GET", SHOW_OPENAPI.path))
    assert (answer.status, answer.headers["Cache-Control"]) == (200, "public, max-age=3600")
    assert json.loads(answer.to_bytes()) == DOCUMENT


def test_the_document_is_only_imported_when_it_is_requested() -> None:
    heavy = ("fermata.wire.openapi.document", "fermata.wire.openapi.schemas", "fermata.wire.bodies.responses.common")
    program = f"import sys, functions.api.app; print([name for name in {heavy} if name in sys.modules])"
    environment = {"PYTHONPATH": ":".join(sys.path)}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("dialect", ["fermata", "instatic"])
@pytest.mark.parametrize("event", EVENT_SAMPLES, ids=lambda event: event.type)
def test_a_stream_line_fits_its_schema(event: events.Event, dialect: Dialect) -> None:
    for text in ndjson.render_event(7, event, dialect).splitlines():
        STREAM_LINE_VALIDATOR.validate(json.loads(text))


def test_every_event_that_leaves_the_log_is_in_the_document() -> None:
    types = {event.type for event in EVENT_SAMPLES}
    assert set(DOCUMENT["components"]["schemas"]["StreamLine"]["discriminator"]["mapping"]) == types


def test_no_optional_member_of_an_event_may_be_null() -> None:
    """Instatic's clients drop a line with such a null."""
    written = [schema for name, schema in DOCUMENT["components"]["schemas"].items() if name.endswith("Event")]
    assert written
    assert '"null"' not in json.dumps(written)


def get_errors(operation: dict[str, Any]) -> dict[int, dict[str, Any]]:
    shared = DOCUMENT["components"]["responses"]
    errors = {int(status): answer for status, answer in operation["responses"].items() if status >= "400"}
    return {
        status: shared[answer["$ref"].rsplit("/", 1)[1]] if "$ref" in answer else answer
        for status, answer in errors.items()
    }


@pytest.mark.parametrize("label", OPERATIONS)
def test_an_error_has_retry_after_if_the_request_may_be_repeated(label: str) -> None:
    for status, answer in get_errors(OPERATIONS[label]).items():
        header = answer["headers"].get("Retry-After")
        assert (header is not None) == (status in DEFAULT_RETRY_AFTER_SECONDS or status == 409), status
        assert header is None or header["required"] is (status != 409), status


@pytest.fixture(scope="module")
def template() -> templates.Template:
    return templates.read_template(templates.TEMPLATE.read_text())


@pytest.mark.parametrize("label", OPERATIONS)
def test_the_errors_of_the_gateway_itself_are_documented(label: str, template: templates.Template) -> None:
    responses = template["Resources"]["Api"]["Properties"]["GatewayResponses"].values()
    statuses = {int(response["StatusCode"]) for response in responses if "StatusCode" in response}
    unknown_path = {404}
    assert statuses - unknown_path <= set(get_errors(OPERATIONS[label]))


def test_the_output_of_a_tool_is_documented() -> None:
    schemas = DOCUMENT["components"]["schemas"]
    assert schemas["ToolResultBody"]["properties"]["result"] == {"$ref": "#/components/schemas/ToolOutputBody"}
    assert schemas["ToolOutputBody"]["required"] == ["ok"]
    assert set(schemas["ToolOutputBody"]["properties"]) == {"ok", "data", "error", "images", "revision"}
