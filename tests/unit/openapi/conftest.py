import socket
from collections.abc import Iterator
from typing import Any

import pytest
from moto import mock_aws

from tests.fixed_response_server import run_fixed_response_server
from tests.resources import REGION, build_provider_urls, make_resources
from tests.unit.openapi.service import GATEWAY, MODELS, Service, make_service
from tests.unit.turns.conftest import lean_transactions, plain_responses

QUICK: dict[str, Any] = {"reader_seconds": 0.03, "reader_heartbeat_seconds": 0.01, "poll_ms": 1, "idle_poll_ms": 5}
look_up = socket.getaddrinfo


def look_up_here(host: Any, *more: Any, **others: Any) -> Any:
    if host != "127.0.0.1":
        raise socket.gaierror(f"There is no {host!r} in these tests.")
    return look_up(host, *more, **others)


@pytest.fixture(scope="module")
def stand() -> Iterator[Service]:
    """Streams last moments, providers list the same models to everybody, and no other host is there."""
    with pytest.MonkeyPatch.context() as patch, mock_aws(), run_fixed_response_server() as provider:
        provider.body = MODELS
        patch.setenv("AWS_DEFAULT_REGION", REGION)
        patch.setattr(socket, "getaddrinfo", look_up_here)
        lean_transactions(patch)
        plain_responses(patch)
        settings: dict[str, Any] = {
            "reader_seconds": 0.03,
            "reader_heartbeat_seconds": 0.01,
            "poll_ms": 1,
            "idle_poll_ms": 5,
        }
        resources = make_resources(**settings, provider_urls=build_provider_urls(provider.url))
        stand, GATEWAY.resources = make_service(resources, patch), resources
        yield stand
        stand.stage.close()
