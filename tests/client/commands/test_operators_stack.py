"""The deployment that an operator's command changes when no stack is named."""

from pathlib import Path

import pytest

from fermata_client.service.connection_files import write_connection_file
from fermata_client.stack import resources
from fermata_client.stack.resources import StackLocation, open_operator_resources

LOCAL = {"endpoint": "http://127.0.0.1:1", "accessKeyId": "i", "secretAccessKey": "s", "url": "http://127.0.0.1:2"}


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[StackLocation]:
    """Where the commands go, in a folder in which `make run` has written its state."""
    locations: list[StackLocation] = []
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".fermata").mkdir(mode=0o700)
    write_connection_file(tmp_path / ".fermata" / "local.json", LOCAL)
    monkeypatch.delenv("SETTINGS_TABLE", raising=False)
    monkeypatch.setattr(resources, "open_stack_resources", locations.append)
    return locations


def test_the_local_service_is_changed_where_no_stack_is_named(opened: list[StackLocation]) -> None:
    open_operator_resources(None, None)
    assert (opened[0].stack, opened[0].local is not None) == ("fermata", True)


def test_a_named_stack_and_the_variables_of_a_deployment_come_first(
    opened: list[StackLocation], monkeypatch: pytest.MonkeyPatch
) -> None:
    open_operator_resources("fermata-prod", "eu-west-1")
    monkeypatch.setenv("SETTINGS_TABLE", "settings")
    open_operator_resources(None, None)
    assert opened == [StackLocation("fermata-prod", "eu-west-1"), StackLocation(None, None)]
