from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from pydantic import SecretStr

from fermata.drivers.transport.authenticated_endpoint import AuthenticatedEndpoint
from fermata.drivers.transport.http_connection import HttpConnection
from tests.strict.anthropic import StrictAnthropic
from tests.strict.server import StrictServer
from tests.unit.drivers.strict_providers import StartServer, StrictProvider
from tests.waiting import BACKSTOP_SECONDS

KEY = "sk-ant-test-0123456789"


@pytest.fixture
def provider() -> Iterator[StrictAnthropic]:
    with StrictAnthropic.run() as server:
        yield server


@pytest.fixture
def connection() -> Iterator[HttpConnection]:
    connection = HttpConnection(stall_seconds=BACKSTOP_SECONDS, total_seconds=BACKSTOP_SECONDS)
    yield connection
    connection.close()


@pytest.fixture
def endpoint(provider: StrictAnthropic) -> AuthenticatedEndpoint:
    return AuthenticatedEndpoint(provider.url, SecretStr(KEY))


@pytest.fixture(scope="module")
def running() -> Iterator[StartServer]:
    with ExitStack() as stack:
        started: dict[str, StrictServer] = {}

        def start(peer: StrictProvider) -> StrictServer:
            if peer.provider not in started:
                started[peer.provider] = stack.enter_context(peer.server_class.run())
            started[peer.provider].reset()
            return started[peer.provider]

        yield start
