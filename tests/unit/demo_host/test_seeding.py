"""Which content system the local tenant has after each start of the local cloud."""

from pathlib import Path

import pytest

from fermata.aws.resources import Resources
from fermata.hosts import registry
from local import seed
from tests.resources import clock, resources, resources_of_new_process

__all__ = ["clock", "resources"]

MODEL = seed.SeededModel("Demo", "demo", "fermata-demo", "http://127.0.0.1:9")
FIRST, SECOND, MINE = "http://127.0.0.1:1001", "http://127.0.0.1:1002", "http://127.0.0.1:2001"


@pytest.fixture
def here(resources: Resources) -> Resources:
    return resources_of_new_process(resources, fermata_stage="local")


def url_after(resources: Resources, directory: Path, url: str) -> str:
    seed.seed_cloud(resources, directory, MODEL, url)
    found = registry.read_host(resources, seed.TENANT)
    assert found is not None
    return found.url


def test_the_demo_content_system_moves_with_its_port_and_keeps_its_secret(here: Resources, tmp_path: Path) -> None:
    assert url_after(here, tmp_path, FIRST) == FIRST
    assert url_after(here, tmp_path, SECOND) == SECOND
    found = registry.read_host(here, seed.TENANT)
    assert found is not None
    kept = found.secrets[0]
    secret = here.vault.open_secret(kept.sealed, purpose="host-secret", tenant=seed.TENANT, name=kept.id)
    assert secret == (tmp_path / "host_secret").read_text()
    assert (tmp_path / "host_secret").stat().st_mode & 0o077 == 0


def test_a_content_system_that_an_operator_has_chosen_instead_stays(here: Resources, tmp_path: Path) -> None:
    url_after(here, tmp_path, FIRST)
    registry.register_host(here, seed.TENANT, MINE)
    assert url_after(here, tmp_path, SECOND) == MINE


def test_each_machine_makes_a_secret_of_its_own(here: Resources, tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    first, second = (seed.ensure_secret_file(tmp_path / name, "host_secret").read_text() for name in ("one", "two"))
    assert first != second
    assert len(first) >= 43
