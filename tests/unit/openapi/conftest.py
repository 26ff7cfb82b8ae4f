import socket
from collections.abc import Iterator
from typing import Any

import pytest
from moto import mock_aws

from tests.dynamodb_in_memory import answer_dynamodb_from_memory
from tests.fixed_response_server import run_fixed_response_server
from tests.lean_moto import make_moto_lean
from tests.resources import REGION, build_provider_urls, make_resources
from tests.unit.openapi.service import GATEWAY, MODELS, Service, make_service

SHORT_STREAMS: dict[str, Any] = {
    "reader_seconds": 0.03,
    "reader_heartbeat_seconds": 0.01,
    "poll_ms": 1,
    "idle_poll_ms": 5,
}
TOOL_ADDRESS = "93.184.216.34"
"""Of the endpoint of remote tools. Nothing is sent there."""
real_getaddrinfo = socket.getaddrinfo


def resolve_loopback_only(host: Any, *more: Any, **others: Any) -> Any:
    if host not in ("127.0.0.1", TOOL_ADDRESS):
        raise socket.gaierror(f"There is no {host!r} in these tests.")
    return real_getaddrinfo(host, *more, **others)


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    """The service with short streams, and one provider as the only host that can be resolved."""
    with pytest.MonkeyPatch.context() as patch, mock_aws(), run_fixed_response_server() as provider:
        provider.body = MODELS
        patch.setenv("AWS_DEFAULT_REGION", REGION)
        patch.setattr(socket, "getaddrinfo", resolve_loopback_only)
        make_moto_lean(patch)
        answer_dynamodb_from_memory(patch)
        resources = make_resources(**SHORT_STREAMS, provider_urls=build_provider_urls(provider.url))
        GATEWAY.resources = resources
        service = make_service(resources, patch)
        yield service
        service.stage.close()
