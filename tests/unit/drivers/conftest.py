from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from pydantic import SecretStr

from fermata.drivers.endpoint import Endpoint
from fermata.drivers.line import Line
from tests.strict.anthropic import StrictAnthropic
from tests.strict.serving import StrictServer
from tests.unit.drivers.peers import Peer, Running

KEY = "sk-ant-test-0123456789"


@pytest.fixture
def provider() -> Iterator[StrictAnthropic]:
    with StrictAnthropic.running() as server:
        yield server


@pytest.fixture
def line() -> Iterator[Line]:
    line = Line(stall_seconds=5, total_seconds=20)
    yield line
    line.close()


@pytest.fixture
def endpoint(provider: StrictAnthropic) -> Endpoint:
    return Endpoint(provider.url, SecretStr(KEY))


@pytest.fixture(scope="module")
def running() -> Iterator[Running]:
    with ExitStack() as stack:
        started: dict[str, StrictServer] = {}

        def start(peer: Peer) -> StrictServer:
            if peer.provider not in started:
                started[peer.provider] = stack.enter_context(peer.kind.running())
            started[peer.provider].forget()
            return started[peer.provider]

        yield start
