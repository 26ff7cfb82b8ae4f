"""Build bodies of Messages requests that are checked as the real API checks them."""

import json
from typing import Any

from fermata.domain.model_io import ModelRequest
from fermata.drivers.protocols.anthropic_messages.request import build_request_body
from local.demo_model.request_checks.anthropic_messages import check_request
from local.demo_model.request_checks.anthropic_thinking import THINKING_BINDING_BETA

HEADERS = {"x-api-key": "k", "anthropic-version": "2023-06-01", "anthropic-beta": THINKING_BINDING_BETA}


def build_accepted_body(request: ModelRequest) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(json.dumps(build_request_body(request)))
    check_request(HEADERS, body)
    return body
