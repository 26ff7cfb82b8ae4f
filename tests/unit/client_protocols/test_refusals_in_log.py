"""Refusals that doors answer in a way of their own are in the log all the same."""

import json
from typing import Any

import pytest

from fermata.aws.resources import Resources
from fermata.client_protocols.editor_stream import open_editor_bridge
from fermata.client_protocols.mcp_endpoint import ask_mcp
from fermata.domain.dialect import NEWEST_GENERATION
from fermata.editor_bridge.open_editors import MAX_OPEN_EDITORS, register_editor
from fermata.wire.auth.mcp_connector_store import create_connector
from fermata.wire.http.messages import HttpRequest, Response
from tests.tenant_tokens import ALL_CAPABILITIES, TokenSigner, make_tenant
from tests.unit.turns.stage import ADA

FORGED = "Bearer eyJhbGciOiJIUzI1NiJ9.e30.forged"


@pytest.fixture
def signer(resources: Resources) -> TokenSigner:
    return make_tenant(resources, "bakery")


def read_refusals(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    """Return the events and reasons of the refusals since the last call."""
    lines = [vars(record) for record in caplog.records if getattr(record, "security", False)]
    caplog.clear()
    return [(line["event"], line["reason"]) for line in lines]


def post_to_mcp(resources: Resources, headers: dict[str, str], method: str, **parameters: Any) -> Response:
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": parameters}
    return ask_mcp(resources, HttpRequest("r", "POST", "/mcp", headers, body=json.dumps(message).encode()))


@pytest.mark.parametrize(
    ("headers", "reason"), [({}, "missing"), ({"authorization": FORGED}, "malformed"), ({"cookie": "a=b"}, "missing")]
)
def test_a_client_of_mcp_without_a_valid_token_is_a_refused_token(
    resources: Resources,
    signer: TokenSigner,
    caplog: pytest.LogCaptureFixture,
    headers: dict[str, str],
    reason: str,
) -> None:
    assert post_to_mcp(resources, headers, "initialize").status == 401
    assert read_refusals(caplog) == [("security.token_refused", reason)]


def test_an_editor_whose_token_is_not_valid_is_a_refused_token_and_one_without_a_token_is_none(
    resources: Resources, signer: TokenSigner, caplog: pytest.LogCaptureFixture
) -> None:
    for headers, refusals in (({"authorization": FORGED}, [("security.token_refused", "malformed")]), ({}, [])):
        request = HttpRequest("r", "GET", "/editor-bridge", headers)
        assert open_editor_bridge(resources, request).status == 403
        assert read_refusals(caplog) == refusals


def test_one_editor_too_many_is_a_refused_capability(
    resources: Resources, signer: TokenSigner, caplog: pytest.LogCaptureFixture
) -> None:
    create_connector(resources, ADA, "Desktop", "local", ["ai.chat"], expires_in_seconds=None)
    for _ in range(MAX_OPEN_EDITORS):
        register_editor(resources, ADA, "site", "seed", NEWEST_GENERATION)
    headers = {name.lower(): text for name, text in signer.bearer_headers(capabilities=ALL_CAPABILITIES).items()}
    assert open_editor_bridge(resources, HttpRequest("r", "GET", "/editor-bridge", headers)).status == 403
    assert read_refusals(caplog) == [("security.capability_refused", "missing_capability")]
