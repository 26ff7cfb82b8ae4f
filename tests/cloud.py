"""Run one local cloud for all tests that need it.

    def test_…(cloud: LocalCloud) -> None:      # marked `cloud` by asking for it

Tests share tables, so each creates its own conversations. A test that changes the deployment or kills the emulator
needs a cloud of its own: `start_own_cloud(tmp_path, parameters={"PollMs": 20})`.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from fermata_client import FermataClient
from local.cloud import LocalCloud


@pytest.fixture(scope="session")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCloud]:
    with LocalCloud(tmp_path_factory.mktemp("cloud")) as running:
        yield running


@pytest.fixture
def service(cloud: LocalCloud) -> Iterator[FermataClient]:
    """A client of the service, with the rights of its editor."""
    with FermataClient(cloud.url, cloud.token) as client:
        yield client


@contextmanager
def start_own_cloud(
    directory: Path, *, keep_state: bool = False, parameters: Mapping[str, object] | None = None
) -> Iterator[LocalCloud]:
    with LocalCloud(directory, keep_state=keep_state, parameters=parameters) as running:
        yield running
