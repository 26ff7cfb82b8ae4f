from collections.abc import Iterator
from typing import Any

import pytest

from fermata.aws.resources import Resources, get_resources
from fermata.wire.http import dispatch
from fermata.wire.http.messages import HttpRequest, Response
from tests.resources import TestClock, environment_from_resources
from tests.unit.openapi import documented_responses
from tests.unit.resource_fixtures import clock, resources, shared_resources

__all__ = ["clock", "deployed", "resources", "shared_resources"]


@pytest.fixture
def deployed(resources: Resources, clock: TestClock, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The functions create these resources from their environment, as they do when deployed, on the test's clock."""
    monkeypatch.setattr("fermata.aws.resources.Clock", lambda: clock)
    for name, value in environment_from_resources(resources).items():
        monkeypatch.setenv(name, value)
    get_resources.cache_clear()
    yield
    get_resources.cache_clear()


@pytest.fixture(autouse=True)
def check_documented_responses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check that every response in these tests is one that the OpenAPI document has."""
    dress = dispatch.add_response_headers

    def checked(request: HttpRequest, answer: Response, **how: Any) -> Response:
        documented_responses.check_documented(request, answer)
        return dress(request, answer, **how)

    monkeypatch.setattr(dispatch, "add_response_headers", checked)
