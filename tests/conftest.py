import pytest

from tests.cloud import cloud, service

__all__ = ["cloud", "service"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whatever uses the running cloud can be left out: `pytest -m "not cloud"`."""
    for item in items:
        if "cloud" in getattr(item, "fixturenames", ()):
            item.add_marker("cloud")
