import json
from collections.abc import Iterator

import pytest

from fermata.aws.resources import Resources
from tests.resources import resources_of_new_process
from tests.strict.model_lists import ModelListServer, run_model_list_server
from tests.unit.resource_fixtures import clock, resources, shared_resources

__all__ = ["clock", "resources", "shared_resources"]


@pytest.fixture
def server() -> Iterator[ModelListServer]:
    with run_model_list_server() as server:
        yield server


@pytest.fixture
def local_resources(resources: Resources, server: ModelListServer) -> Resources:
    """A process of the local stage, whose providers are all at the scripted server."""
    urls = {"anthropic": server.url, "openai": server.url, "openrouter": f"{server.url}/api"}
    return resources_of_new_process(resources, fermata_stage="local", provider_urls=json.dumps(urls))


@pytest.fixture(autouse=True)
def every_line(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
