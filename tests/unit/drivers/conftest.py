from collections.abc import Iterator

import pytest
from pydantic import SecretStr

from fermata.drivers.endpoint import Endpoint
from fermata.drivers.line import Line
from tests.strict.anthropic import StrictAnthropic

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
