from collections.abc import Iterator

import pytest

from fermata.aws.desk import Desk, open_desk
from tests.desk import clock, desk, environment

__all__ = ["clock", "deployed", "desk"]


@pytest.fixture
def deployed(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The doors open the desk their environment names, as they do when deployed: this one."""
    for name, value in environment(desk).items():
        monkeypatch.setenv(name, value)
    open_desk.cache_clear()
    yield
    open_desk.cache_clear()
