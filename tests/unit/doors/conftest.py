from collections.abc import Iterator
from typing import Any

import pytest

from fermata.aws.desk import Desk, open_desk
from fermata.wire import edge
from fermata.wire.http import Answer, Request
from tests.desk import environment
from tests.unit.laid_out import clock, desk, parts
from tests.unit.openapi import documented

__all__ = ["clock", "deployed", "desk", "parts"]


@pytest.fixture
def deployed(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The doors open the desk their environment names, as they do when deployed: this one."""
    for name, value in environment(desk).items():
        monkeypatch.setenv(name, value)
    open_desk.cache_clear()
    yield
    open_desk.cache_clear()


@pytest.fixture(autouse=True)
def documented_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is asked of a door in these tests, its answer is one that the OpenAPI document has."""
    dress = edge.dressed

    def checked(request: Request, answer: Answer, **how: Any) -> Answer:
        documented.check(request, answer)
        return dress(request, answer, **how)

    monkeypatch.setattr(edge, "dressed", checked)
