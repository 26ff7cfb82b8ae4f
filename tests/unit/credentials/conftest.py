from collections.abc import Iterator

import pytest

from fermata.aws.desk import Desk
from tests.desk import another_process
from tests.strict.listings import Listings, listings
from tests.unit.laid_out import clock, desk, parts

__all__ = ["clock", "desk", "parts"]


@pytest.fixture
def server() -> Iterator[Listings]:
    with listings() as server:
        yield server


@pytest.fixture
def near(desk: Desk, server: Listings) -> Desk:
    """A process whose providers are all the server of this machine, and which may be told of others here."""
    urls = {"anthropic_url": server.url, "openai_url": server.url, "openrouter_url": f"{server.url}/api"}
    return another_process(desk, fermata_stage="local", **urls)


@pytest.fixture(autouse=True)
def every_line(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
