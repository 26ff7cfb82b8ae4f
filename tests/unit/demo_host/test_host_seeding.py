"""The local tenant keeps or changes its content system when the local cloud starts again."""

from pathlib import Path

import pytest

from fermata.aws.resources import Resources
from fermata.hosts import registry
from local import seed
from tests.resources import clock, resources, resources_of_new_process

__all__ = ["clock", "resources"]

MODEL = seed.SeededModel("Demo", "demo", "fermata-demo", "http://127.0.0.1:9")
FIRST_URL = "http://127.0.0.1:1001"
SECOND_URL = "http://127.0.0.1:1002"
OPERATOR_URL = "http://127.0.0.1:2001"


@pytest.fixture
def local_resources(resources: Resources) -> Resources:
    return resources_of_new_process(resources, fermata_stage="local")


def seed_and_read_url(resources: Resources, directory: Path, url: str) -> str:
    seed.seed_cloud(resources, directory, MODEL, url)
    host = registry.read_host(resources, seed.TENANT)
    assert host is not None
    return host.url


def test_a_new_port_of_the_demo_host_keeps_its_secret(local_resources: Resources, tmp_path: Path) -> None:
    assert seed_and_read_url(local_resources, tmp_path, FIRST_URL) == FIRST_URL
    assert seed_and_read_url(local_resources, tmp_path, SECOND_URL) == SECOND_URL
    host = registry.read_host(local_resources, seed.TENANT)
    assert host is not None
    host_secret = host.secrets[0]
    secret = local_resources.vault.open_secret(
        host_secret.sealed, purpose="host-secret", tenant=seed.TENANT, name=host_secret.id
    )
    assert secret == (tmp_path / "host_secret").read_text()
    assert (tmp_path / "host_secret").stat().st_mode & 0o077 == 0


def test_a_content_system_that_an_operator_registered_is_kept(local_resources: Resources, tmp_path: Path) -> None:
    seed_and_read_url(local_resources, tmp_path, FIRST_URL)
    registry.register_host(local_resources, seed.TENANT, OPERATOR_URL)
    assert seed_and_read_url(local_resources, tmp_path, SECOND_URL) == OPERATOR_URL


def test_each_machine_generates_its_own_secret(local_resources: Resources, tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    first, second = (seed.ensure_secret_file(tmp_path / name, "host_secret").read_text() for name in ("one", "two"))
    assert first != second
    assert len(first) >= 43
