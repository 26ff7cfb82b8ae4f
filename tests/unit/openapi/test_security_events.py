"""Every refusal of the HTTP API is one security event, with the keys that an operator counts by and without secrets."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fermata.aws import observability
from fermata.aws.security_events import SecurityEvent, make_user_pseudonym
from fermata.wire.operations import credentials, defaults, editor
from fermata.wire.operations.operation import BaseOperation
from tests.quick_suite_samples import sample_for_quick_suite
from tests.tenant_tokens import TokenSigner, make_tenant
from tests.unit.openapi.schemathesis_schema import AnyCase
from tests.unit.openapi.service import CAPABILITIES, Service
from tests.unit.openapi.test_responses import AUTHENTICATED_OPERATIONS, FORGED_AUTHORIZATION, make_case
from tests.unit.openapi.test_tenant_isolation import SESSION_OPERATIONS, refers_to_an_item

OPERATIONS_OF_ITEMS = [
    operation
    for operation in AUTHENTICATED_OPERATIONS
    if refers_to_an_item(operation) and operation not in (defaults.SET_DEFAULT, *SESSION_OPERATIONS)
]
"""Without sessions of the planner, whose names are the caller's own."""
PAGE = Path(__file__).parents[3] / "docs" / "security-events.md"
REASON_OF_REFUSAL = re.compile(
    r"(?:Unauthorized|Forbidden|Refused|NotFound|TooManyRequests|PaymentRequired|PayloadTooLarge)"
    r"\((?:(?!raise )[^\n]*\n){0,4}?[^\n]*\breason=\"(\w+)\""
)
ReadLines = Callable[[], list[dict[str, Any]]]
STANDARD_KEYS = {"level", "location", "message", "timestamp", "service", "request_id"}


@pytest.fixture(scope="module")
def rival(service: Service) -> TokenSigner:
    return make_tenant(service.resources, "rival-bakery")


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> ReadLines:
    """Return a function that reads the security events since its last call, as CloudWatch receives them."""
    formatter = observability.logger.registered_formatter

    def read_lines() -> list[dict[str, Any]]:
        written = [json.loads(formatter.format(record)) for record in caplog.records if hasattr(record, "security")]
        caplog.clear()
        return written

    return read_lines


def list_existing_ids(service: Service, operation: BaseOperation) -> dict[str, str]:
    """Return ids as for a request that succeeds. Refused requests may all name the same turn."""
    if "/bridges/" in operation.path:
        return {"id": service.waiting_turn, "bridgeId": service.waiting_turn}
    return service.real_ids(operation)


def call_and_read_event(lines: ReadLines, case: AnyCase, headers: dict[str, str]) -> dict[str, Any]:
    lines()
    case.call(headers=headers)
    [line] = lines()
    assert f"`{line['reason']}`" in PAGE.read_text()
    return {name: fact for name, fact in line.items() if name not in STANDARD_KEYS}


@pytest.mark.parametrize(
    ("headers", "reason"), [({}, "missing"), ({"Authorization": FORGED_AUTHORIZATION}, "bad_signature")]
)
@pytest.mark.parametrize(
    "operation", sample_for_quick_suite(AUTHENTICATED_OPERATIONS, every=8), ids=lambda operation: operation.name
)
def test_a_refused_token_is_one_event(
    service: Service, lines: ReadLines, operation: BaseOperation, headers: dict[str, str], reason: str
) -> None:
    event = call_and_read_event(lines, make_case(operation, list_existing_ids(service, operation)), headers)
    assert event == {"event": SecurityEvent.TOKEN_REFUSED, "security": True, "reason": reason, "status": 401}


@pytest.mark.parametrize(
    "operation", sample_for_quick_suite(AUTHENTICATED_OPERATIONS, every=8), ids=lambda operation: operation.name
)
def test_a_missing_capability_is_one_event(service: Service, lines: ReadLines, operation: BaseOperation) -> None:
    case = make_case(operation, list_existing_ids(service, operation))
    event = call_and_read_event(lines, case, {"Authorization": service.token("none")})
    assert event == {
        "event": SecurityEvent.CAPABILITY_REFUSED,
        "security": True,
        "reason": "missing_capability",
        "status": 403,
        "tenant": "bakery",
        "user": make_user_pseudonym("bakery", "ada"),
    }


@pytest.mark.parametrize(
    "operation", sample_for_quick_suite(OPERATIONS_OF_ITEMS, every=8), ids=lambda operation: operation.name
)
def test_an_id_of_another_tenant_is_one_event(
    service: Service, rival: TokenSigner, lines: ReadLines, operation: BaseOperation
) -> None:
    case = make_case(operation, list_existing_ids(service, operation))
    event = call_and_read_event(lines, case, rival.bearer_headers(capabilities=CAPABILITIES))
    assert event["event"] == SecurityEvent.ID_REFUSED
    assert (event["tenant"], event["user"]) == ("rival-bakery", make_user_pseudonym("rival-bakery", "ada"))


def test_a_credential_of_another_tenant_in_a_default_is_one_event(
    service: Service, rival: TokenSigner, lines: ReadLines
) -> None:
    case = make_case(defaults.SET_DEFAULT, list_existing_ids(service, defaults.SET_DEFAULT))
    event = call_and_read_event(lines, case, rival.bearer_headers(capabilities=CAPABILITIES))
    assert (event["event"], event["status"]) == (SecurityEvent.ID_REFUSED, 400)


@pytest.mark.parametrize(
    ("url", "reason", "host"),
    [
        ("https://127.0.0.1/v1", "not_public", "127.0.0.1"),
        ("http://models.example/v1", "scheme", "models.example"),
        ("https://models.example:22/v1", "port", "models.example"),
        ("https://sk-ant-secret@models.example/v1", "user_name", "models.example"),
        ("sk-ant-secret", "malformed", None),
    ],
)
def test_an_address_that_may_not_be_reached_is_one_event(
    service: Service, lines: ReadLines, url: str, reason: str, host: str | None
) -> None:
    body = {"providerId": "openai-compatible", "authMode": "baseUrl", "displayLabel": "Mine", "baseUrl": url}
    case = make_case(credentials.CREATE_CREDENTIAL, {})
    case.body = body | {"apiKey": "sk-ant-secret-key"}
    event = call_and_read_event(lines, case, service.headers(credentials.CREATE_CREDENTIAL))
    assert event["event"] == SecurityEvent.ADDRESS_REFUSED
    assert (event["reason"], event.get("host")) == (reason, host)
    assert "sk-ant" not in json.dumps(event)


def test_a_page_of_an_unknown_origin_is_one_event(service: Service, lines: ReadLines) -> None:
    case = make_case(editor.LIST_SCOPES, {})
    case.method = "OPTIONS"
    event = call_and_read_event(lines, case, {"Origin": "https://evil.example"})
    assert (event["event"], event["reason"]) == (SecurityEvent.ORIGIN_REFUSED, "preflight")


def test_a_cookie_from_a_page_of_an_unknown_origin_is_one_event(service: Service, lines: ReadLines) -> None:
    case = make_case(credentials.CREATE_CREDENTIAL, {})
    case.cookies = {"fermata_session": service.bakery.sign_token()}
    event = call_and_read_event(lines, case, {"Origin": "https://evil.example"})
    assert (event["event"], event["reason"]) == (SecurityEvent.ORIGIN_REFUSED, "unknown_origin")


def test_the_page_of_security_events_lists_every_reason_of_a_refusal() -> None:
    package = Path(observability.__file__).parents[1]
    sources = [path.read_text() for path in package.rglob("*.py")]
    reasons = {reason for source in sources for reason in REASON_OF_REFUSAL.findall(source)}
    assert reasons >= {"expired", "not_public", "unpriced_model", "preflight", "api_key"}
    page = PAGE.read_text()
    assert {reason for reason in reasons if f"`{reason}`" not in page} == set()


def test_the_page_of_security_events_lists_all_of_them() -> None:
    assert set(re.findall(r"`(security\.\w+)`", PAGE.read_text())) == {str(event) for event in SecurityEvent}
