"""The address and token of a service are taken from files that only the user can have written."""

import os
from pathlib import Path

import pytest

from fermata_client.service.connection_settings import Connection, find_connection
from fermata_client.service.state_files import (
    CONNECTED_FILE_NAME,
    LOCAL_FILE_NAME,
    STATE_FILE,
    ConnectionNotConfiguredError,
    delete_state_file,
    read_state_file,
    user_state_file,
    write_state_file,
)
from fermata_client.stack.resources import find_local_stack

URL = "http://127.0.0.1:9999"


@pytest.fixture(autouse=True)
def isolated_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    for name in ("FERMATA_URL", "FERMATA_TOKEN"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    write_state_file(folder / STATE_FILE, {"url": URL, "token": "of-project", "endpoint": "http://127.0.0.1:1"})
    return folder


def test_a_service_is_found_from_every_folder(tmp_path: Path, project: Path) -> None:
    assert find_connection(start=project / "deep") == Connection(URL, "of-project")
    with pytest.raises(ConnectionNotConfiguredError):
        find_connection(start=tmp_path)
    write_state_file(user_state_file(LOCAL_FILE_NAME), {"url": URL, "token": "of-make-run"})
    assert find_connection(start=tmp_path) == Connection(URL, "of-make-run")
    write_state_file(user_state_file(CONNECTED_FILE_NAME), {"url": "https://f.example", "token": "of-connect"})
    assert find_connection(start=tmp_path) == Connection("https://f.example", "of-connect")
    assert find_connection(start=project) == Connection(URL, "of-project")
    assert find_connection(URL, start=tmp_path).token == "of-make-run"


def test_a_file_is_written_for_its_owner_only(project: Path) -> None:
    file = project / STATE_FILE
    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert [path.name for path in file.parent.iterdir()] == [file.name]


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
@pytest.mark.parametrize("part", ["file", "folder"])
def test_what_others_can_write_is_not_used(project: Path, mode: int, part: str) -> None:
    file = project / STATE_FILE
    (file if part == "file" else file.parent).chmod(mode if part == "file" else mode | 0o100)
    with pytest.raises(ConnectionNotConfiguredError, match=r"others can write to it.*chmod go-w"):
        find_connection(start=project)
    with pytest.raises(ConnectionNotConfiguredError):
        find_local_stack(start=project)
    assert find_connection(URL, "given", project) == Connection(URL, "given")


def test_what_belongs_to_another_user_is_not_used(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = os.getuid() + 1
    monkeypatch.setattr(os, "getuid", lambda: other)
    with pytest.raises(ConnectionNotConfiguredError, match="belongs to another user"):
        find_connection(start=project)
    with pytest.raises(ConnectionNotConfiguredError):
        find_local_stack(start=project)


@pytest.mark.parametrize(
    "content",
    ["{", "[]", '"x"', '{"url": "x"}', '{"url": null, "token": "a"}', '{"url": "http://a", "token": ["a"]}', ""],
)
def test_a_broken_file_is_named(project: Path, content: str) -> None:
    (project / STATE_FILE).write_text(content)
    with pytest.raises(ConnectionNotConfiguredError, match=r"local\.json cannot be read"):
        find_connection(start=project)


def test_a_service_deletes_only_its_own_file(tmp_path: Path) -> None:
    file = user_state_file(LOCAL_FILE_NAME)
    delete_state_file(file, "a")
    write_state_file(file, {"url": URL, "token": "b"})
    delete_state_file(file, "a")
    assert read_state_file(file)["token"] == "b"
    delete_state_file(file, "b")
    assert not file.exists()
