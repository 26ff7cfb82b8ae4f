from pathlib import Path

import pytest

from tests.cloud import cloud, service

__all__ = ["cloud", "service"]


TESTS = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whatever uses the running cloud can be left out: `pytest -m "not cloud"`.

    Under xdist a file stays in one process, and all turns on the local cloud do: they share one cloud.
    """
    for item in items:
        if "cloud" in getattr(item, "fixturenames", ()):
            item.add_marker("cloud")
        place = item.path.relative_to(TESTS)
        item.add_marker(pytest.mark.xdist_group("e2e" if place.parts[0] == "e2e" else str(place)))
