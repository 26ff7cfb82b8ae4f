"""The address and token of a service are taken from files that only the user can have written."""

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from fermata_client.service.connection_files import (
    CONNECTED_FILE_NAME,
    LOCAL_FILE_NAME,
    PROJECT_CONNECTION_FILE,
    ConnectionNotConfiguredError,
    delete_connection_file,
    read_connection_file,
    user_connection_file,
    write_connection_file,
)
from fermata_client.service.connection_settings import Connection, find_connection
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
    write_connection_file(
        folder / PROJECT_CONNECTION_FILE, {"url": URL, "token": "of-project", "endpoint": "http://127.0.0.1:1"}
    )
    return folder


def test_a_service_is_found_from_every_folder(tmp_path: Path, project: Path) -> None:
    assert find_connection(start=project / "deep") == Connection(URL, "of-project")
    with pytest.raises(ConnectionNotConfiguredError):
        find_connection(start=tmp_path)
    write_connection_file(user_connection_file(LOCAL_FILE_NAME), {"url": URL, "token": "of-make-run"})
    assert find_connection(start=tmp_path) == Connection(URL, "of-make-run")
    write_connection_file(
        user_connection_file(CONNECTED_FILE_NAME), {"url": "https://f.example", "token": "of-connect"}
    )
    assert find_connection(start=tmp_path) == Connection("https://f.example", "of-connect")
    assert find_connection(start=project) == Connection(URL, "of-project")
    assert find_connection(URL, start=tmp_path).token == "of-make-run"


def test_a_file_is_written_for_its_owner_only(project: Path) -> None:
    file = project / PROJECT_CONNECTION_FILE
    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert [path.name for path in file.parent.iterdir()] == [file.name]


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
@pytest.mark.parametrize("part", ["file", "folder"])
def test_what_others_can_write_is_not_used(project: Path, mode: int, part: str) -> None:
    file = project / PROJECT_CONNECTION_FILE
    (file if part == "file" else file.parent).chmod(mode if part == "file" else mode | 0o100)
    with pytest.raises(ConnectionNotConfiguredError, match=r"others can write to .*chmod go-w"):
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


def test_a_folder_that_the_user_may_not_enter_stops_nobody(
    tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = project / "shared" / PROJECT_CONNECTION_FILE
    real_stat = Path.stat

    def refuse(path: Path, **options: bool) -> os.stat_result:
        if path == closed:
            raise PermissionError(13, "Permission denied", str(path))
        return real_stat(path, **options)

    monkeypatch.setattr(Path, "stat", refuse)
    assert find_connection(start=project / "shared" / "mine").token == "of-project"


def test_a_state_folder_that_is_relative_is_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", "state")
    assert user_connection_file(LOCAL_FILE_NAME) == tmp_path / ".local" / "state" / "fermata" / LOCAL_FILE_NAME


@pytest.mark.parametrize("mode", [0o777, 0o773])
def test_what_is_below_a_folder_that_others_can_write_to_is_not_used(tmp_path: Path, mode: int) -> None:
    shared = tmp_path / "shared"
    write_connection_file(
        shared / "mine" / PROJECT_CONNECTION_FILE, {"url": URL, "token": "t", "endpoint": "http://127.0.0.1:1"}
    )
    start = shared / "mine" / "deep"
    assert find_connection(start=start).token == "t"
    shared.chmod(mode)
    with pytest.raises(ConnectionNotConfiguredError, match=f"others can write to {shared} above it.*chmod go-w"):
        find_connection(start=start)
    shared.chmod(mode | 0o1000)
    assert find_connection(start=start).token == "t"


def test_what_a_link_leads_to_is_looked_at_and_where_the_link_is(tmp_path: Path, project: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    (shared / "project").symlink_to(project)
    assert read_connection_file(shared / "project" / PROJECT_CONNECTION_FILE)["token"] == "of-project"
    shared.chmod(0o777)
    with pytest.raises(ConnectionNotConfiguredError, match="others can write"):
        read_connection_file(shared / "project" / PROJECT_CONNECTION_FILE)
    shared.chmod(0o700)
    project.chmod(0o777)
    with pytest.raises(ConnectionNotConfiguredError, match="others can write"):
        read_connection_file(shared / "project" / PROJECT_CONNECTION_FILE)


def test_a_folder_of_the_users_own_group_is_used(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project.chmod(0o775)
    user = SimpleNamespace(pw_gid=project.stat().st_gid, pw_name="ada")
    members: list[str] = []
    monkeypatch.setattr("pwd.getpwuid", lambda _: user)
    monkeypatch.setattr("grp.getgrgid", lambda _: SimpleNamespace(gr_name="ada", gr_mem=members))
    assert find_connection(start=project).token == "of-project"
    members.append("eve")
    with pytest.raises(ConnectionNotConfiguredError, match="others can write"):
        find_connection(start=project)


@pytest.mark.skipif(os.getuid() != 0, reason="gives a folder to another user")
def test_what_is_below_another_users_folder_is_not_used(tmp_path: Path) -> None:
    write_connection_file(tmp_path / "theirs" / "mine" / PROJECT_CONNECTION_FILE, {"url": URL, "token": "t"})
    os.chown(tmp_path / "theirs", 12345, 12345)
    with pytest.raises(ConnectionNotConfiguredError, match="belongs to another user, who can replace it"):
        find_connection(start=tmp_path / "theirs" / "mine")


@pytest.mark.parametrize(
    "content",
    ["{", "[]", '"x"', '{"url": "x"}', '{"url": null, "token": "a"}', '{"url": "http://a", "token": ["a"]}', ""],
)
def test_a_broken_file_is_named(project: Path, content: str) -> None:
    (project / PROJECT_CONNECTION_FILE).write_text(content)
    with pytest.raises(ConnectionNotConfiguredError, match=r"local\.json cannot be read"):
        find_connection(start=project)


def test_a_service_deletes_only_its_own_file(tmp_path: Path) -> None:
    file = user_connection_file(LOCAL_FILE_NAME)
    delete_connection_file(file, "a")
    write_connection_file(file, {"url": URL, "token": "b"})
    delete_connection_file(file, "a")
    assert read_connection_file(file)["token"] == "b"
    delete_connection_file(file, "b")
    assert not file.exists()
