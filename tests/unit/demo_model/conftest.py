from collections.abc import Iterator

import httpx
import pytest
from pydantic import SecretStr

from fermata.drivers.transport.authenticated_endpoint import AuthenticatedEndpoint
from fermata.drivers.transport.http_connection import HttpConnection
from local.demo_model.server import run_demo_model
from local.signed_pages import RunSignature
from tests.waiting import BACKSTOP_SECONDS


@pytest.fixture(scope="package")
def url() -> Iterator[str]:
    with run_demo_model() as address:
        yield address


@pytest.fixture
def key(request: pytest.FixtureRequest) -> str:
    """A key of the test's own, so that scripts and records of tests do not meet."""
    return f"key-{request.node.name}"


@pytest.fixture
def endpoint(url: str, key: str) -> AuthenticatedEndpoint:
    return AuthenticatedEndpoint(url, SecretStr(key))


@pytest.fixture
def line() -> Iterator[HttpConnection]:
    line = HttpConnection(stall_seconds=BACKSTOP_SECONDS, total_seconds=BACKSTOP_SECONDS)
    yield line
    line.close()


@pytest.fixture
def http(url: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=url, auth=RunSignature()) as client:
        yield client
