"""A process of the local cloud that starts as a copy of a process with everything imported (decision 0609)."""

import asyncio
import functools
import json
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from local.emulator.copy_page import COPIES_PATH, CopyPage
from local.emulator.runtime.execution_environments import EnvironmentFailedError, Preload, SharedProcesses
from local.forked_process import ForkedProcess
from local.processes import DidNotStartError
from tests.waiting import wait_until

StartCopy = Callable[..., ForkedProcess]


@pytest.fixture(scope="module")
def shared() -> Iterator[SharedProcesses]:
    processes = SharedProcesses(sys.executable, Preload())
    yield processes
    processes.close()


@pytest.fixture
def start_copy(shared: SharedProcesses, tmp_path: Path) -> Iterator[StartCopy]:
    started = []

    def start(**environment: str) -> ForkedProcess:
        reading, writing = os.pipe()
        os.write(writing, b"bread")
        os.close(writing)
        try:
            copy = ForkedProcess(
                "tests.local.copied_program",
                {"GREETING": "Hello"} | environment,
                tmp_path / "log",
                ask_for_copy=functools.partial(shared.fork_program, variables={}),
                descriptors={"PIPE": reading},
            )
        finally:
            os.close(reading)
        started.append(copy)
        return copy

    yield start
    for copy in started:
        copy.stop()


def test_a_copy_has_its_own_variables_descriptors_and_log(start_copy: StartCopy, tmp_path: Path) -> None:
    copy = start_copy(GREETING="Good morning")
    assert copy.ready_line == "Good morning bread False"
    assert os.getpgid(copy.pid) == copy.pid
    wait_until(lambda: (tmp_path / "log").read_text() == "A line of the log.\n", "the log has the line")
    assert copy.is_running()


def test_a_copy_is_made_where_paths_of_temporary_files_are_too_long_for_sockets(
    start_copy: StartCopy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / ("long" * 25)
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    assert start_copy().is_running()


def test_a_copy_ends_when_it_is_stopped_or_killed(start_copy: StartCopy) -> None:
    stopped, killed = start_copy(), start_copy()
    stopped.stop()
    killed.kill()
    assert not stopped.is_running()
    assert not killed.is_running()
    stopped.kill()


def test_a_copy_ends_with_the_process_that_started_it(start_copy: StartCopy) -> None:
    copy = start_copy()
    copy._connection.shutdown(1)  # as the end of that process closes it
    assert copy._has_ended(30)


def test_a_copy_that_fails_is_reported_with_its_log(start_copy: StartCopy) -> None:
    with pytest.raises(DidNotStartError, match=r"(?s)copied_program` did not start.*The program does not want to"):
        start_copy(FAILS="1")


def test_a_copy_outlives_the_process_that_it_was_copied_from(start_copy: StartCopy, shared: SharedProcesses) -> None:
    copy = start_copy()
    (process,) = shared._processes.values()
    os.kill(process._process.pid, signal.SIGKILL)
    process._process.wait()
    assert copy.is_running()
    assert start_copy().is_running(), "the next copy is of a new process"


def request_copy(fork_copy: Callable[[dict[str, Any], str], None]) -> list[Any]:
    async def receive() -> dict[str, Any]:
        return {"body": json.dumps({"configuration": {"FunctionName": "stream"}, "socket": "/a/socket"}).encode()}

    async def send(message: Any) -> None:
        sent.append(message)

    async def other_app(scope: Any, receive: Any, send: Any) -> None:
        raise AssertionError(scope)

    sent: list[Any] = []
    asyncio.run(CopyPage(other_app, fork_copy)({"type": "http", "path": COPIES_PATH}, receive, send))
    return sent


def test_the_page_of_copies_says_what_it_was_asked_for() -> None:
    asked: list[Any] = []
    start, _ = request_copy(lambda configuration, path: asked.append((configuration, path)))
    assert start["status"] == 200
    assert asked == [({"FunctionName": "stream"}, "/a/socket")]


def test_the_page_of_copies_reports_why_there_is_none() -> None:
    def refuse(configuration: dict[str, Any], path: str) -> None:
        raise EnvironmentFailedError.from_error("Runtime.ExitError", "The shared process does not start")

    start, body = request_copy(refuse)
    assert start["status"] == 500
    assert json.loads(body["body"]) == {"error": "The shared process does not start"}
