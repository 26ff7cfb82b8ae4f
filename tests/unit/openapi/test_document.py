"""The document itself: valid, whole, and made of what the doors really do."""

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
from fermata.wire.operations import service, surface
from fermata.wire.renderers import ndjson
from functions.api import app as api
from tests.template import templates
from tests.unit.openapi.schemathesis_schema import STREAM_LINE_VALIDATOR, schema
from tests.unit.openapi.service import ROUTES, Service

DOCUMENT = document.get_openapi_document()
SOON = "2026-01-01T00:00:00Z"
REPORT = events.UndoReport(undone=("b/1/0",), skipped=(events.SkippedEdit(effect_key="b/1/1", reason="Conflict."),))
EVENTS: tuple[events.Event, ...] = (
    events.BridgeReadyEvent(bridge_id="b"),
    events.BridgeReadyEvent(bridge_id="u", undoes="b"),
    events.TextEvent(text="Hello"),
    events.ReasoningEvent(text="Hm"),
    events.ToolCallEvent(tool_call_id="c", tool_name="insertHtml"),
    events.ToolRequestEvent(
        request_id="r",
        tool_call_id="c",
        tool_name="insertHtml",
        input={},
        effect_key="t/1/c",
        deadline="2026-01-01T00:00:00Z",
        revision="r1",
        undoes="b/1/0",
    ),
    events.ToolResultEvent(tool_call_id="c", tool_name="insertHtml", ok=True),
    events.ToolResultEvent(tool_call_id="c", tool_name="insertHtml", ok=False, error="There is no such node."),
    events.ContextEvent(prompt_tokens=1, context_tokens=2),
    events.ContextEvent(prompt_tokens=1, context_tokens=2, cache_read_tokens=1, cache_creation_tokens=0),
    events.UsageEvent(prompt_tokens=1, completion_tokens=1, cost_usd=0.5),
    events.RoundRetractedEvent(round=1),
    events.HeldEvent(until=SOON, retry_after=30),
    events.WarningEvent(message="The server cut the prompt."),
    events.ErrorEvent(message="The provider failed."),
    events.ErrorEvent(message="The provider failed.", code="provider_error", retryable=True),
    events.DoneEvent(),
    events.DoneEvent(report=REPORT),
    events.CancelledEvent(),
    events.CancelledEvent(report=REPORT),
    events.ErrorEvent(message="Nobody answered.", report=REPORT),
    events.ToolResultEvent(tool_call_id="c", tool_name="restore", ok=False, error="Somebody was here.", conflict=True),
)


OPERATIONS = {
    f"{method.upper()} {path}": operation
    for path, methods in DOCUMENT["paths"].items()
    for method, operation in methods.items()
}


def test_it_is_valid_and_nothing_it_refers_to_is_missing() -> None:
    schema.validate()
    found = [operation.ok() for operation in schema.get_all_operations() if isinstance(operation, Ok)]
    assert [operation.label for operation in found] == list(OPERATIONS)


def test_the_doors_do_what_it_says_and_nothing_else() -> None:
    assert [route.operation.name for route in ROUTES if route.operation not in surface.OPERATIONS] == []
    assert sorted(route.operation.name for route in ROUTES) == sorted(
        operation.name for operation in surface.OPERATIONS
    )


def test_every_operation_has_a_name_of_its_own() -> None:
    names = [operation["operationId"] for operation in OPERATIONS.values()]
    assert len(set(names)) == len(names) == len(surface.OPERATIONS)


def test_anybody_may_fetch_it_and_keep_it_for_an_hour(stand: Service) -> None:
    answer = handle_request(stand.resources, api.router.routes, HttpRequest("r", "GET", service.SHOW_OPENAPI.path))
    assert (answer.status, answer.headers["Cache-Control"]) == (200, "public, max-age=3600")
    assert json.loads(answer.to_bytes()) == DOCUMENT


def test_nobody_loads_it_who_does_not_ask_for_it() -> None:
    heavy = ("fermata.wire.openapi.document", "fermata.wire.openapi.schemas", "fermata.wire.bodies.responses")
    program = f"import sys, functions.api.app; print([name for name in {heavy} if name in sys.modules])"
    environment = {"PYTHONPATH": ":".join(sys.path)}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("dialect", ["fermata", "instatic"])
@pytest.mark.parametrize("event", EVENTS, ids=lambda event: event.type)
def test_a_line_of_the_stream_is_as_it_says(event: events.Event, dialect: Dialect) -> None:
    for text in ndjson.render_event(7, event, dialect).splitlines():
        STREAM_LINE_VALIDATOR.validate(json.loads(text))


def test_every_event_that_leaves_the_log_is_in_it() -> None:
    shown = {event.type for event in EVENTS}
    assert set(DOCUMENT["components"]["schemas"]["StreamLine"]["discriminator"]["mapping"]) == shown


def test_no_optional_member_of_an_event_may_be_null() -> None:
    """A null there makes an Instatic client drop the line."""
    written = [schema for name, schema in DOCUMENT["components"]["schemas"].items() if name.endswith("Event")]
    assert written
    assert '"null"' not in json.dumps(written)


def refusals(operation: dict[str, Any]) -> dict[int, dict[str, Any]]:
    shared = DOCUMENT["components"]["responses"]
    found = {int(status): answer for status, answer in operation["responses"].items() if status >= "400"}
    return {
        status: shared[answer["$ref"].rsplit("/", 1)[1]] if "$ref" in answer else answer
        for status, answer in found.items()
    }


@pytest.mark.parametrize("label", OPERATIONS)
def test_who_has_to_wait_is_told_how_long(label: str) -> None:
    for status, answer in refusals(OPERATIONS[label]).items():
        assert ("Retry-After" in answer["headers"]) == (status in DEFAULT_RETRY_AFTER_SECONDS), status


@pytest.fixture(scope="module")
def template() -> templates.Template:
    return templates.read_template(templates.TEMPLATE.read_text())


@pytest.mark.parametrize("label", OPERATIONS)
def test_what_the_gateway_answers_by_itself_is_in_it(label: str, template: templates.Template) -> None:
    responses = template["Resources"]["Api"]["Properties"]["GatewayResponses"].values()
    made = {int(response["StatusCode"]) for response in responses if "StatusCode" in response}
    of_no_operation = {404}
    assert made - of_no_operation <= set(refusals(OPERATIONS[label]))


def test_what_a_tool_comes_to_is_described_for_whoever_builds_an_editor() -> None:
    schemas = DOCUMENT["components"]["schemas"]
    assert schemas["ToolResultBody"]["properties"]["result"] == {"$ref": "#/components/schemas/ToolOutputBody"}
    assert schemas["ToolOutputBody"]["required"] == ["ok"]
    assert set(schemas["ToolOutputBody"]["properties"]) == {"ok", "data", "error", "images", "revision"}
