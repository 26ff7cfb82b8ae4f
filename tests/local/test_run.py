"""Test `make run`, `make logs` and `make demo` as a user runs them."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fermata_client import FermataClient, run_turn
from local import demo, logs, run
from local.cloud import LocalCloud
from local.lock_or_delete_state import EMULATOR_STATE, delete_state, lock_emulator_state, lock_state
from local.processes import ROOT, inherited_environment
from tests.waiting import BACKSTOP_SECONDS, wait_until

pytestmark = pytest.mark.cloud


@contextlib.contextmanager
def running(state: Path) -> Iterator[tuple["subprocess.Popen[str]", FermataClient]]:
    """Run the service as `make run` does, with another state directory."""
    (state / "local.json").unlink(missing_ok=True)
    source = f"from pathlib import Path; from local import run; run.main(Path({str(state)!r}))"
    environment = inherited_environment() | {"FERMATA_PORT": "0", "XDG_STATE_HOME": str(state / "user")}
    command = [sys.executable, "-c", source]
    process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True)
    try:
        wait_until(lambda: (state / "local.json").exists() and (state / "local.json").read_text(), "it runs")
        connection = json.loads((state / "local.json").read_text())
        with FermataClient(connection["url"], connection["token"]) as client:
            yield process, client
    finally:
        process.kill()
        process.communicate()


def test_state_is_deleted_only_while_it_is_not_used(tmp_path: Path) -> None:
    state = tmp_path / "state"
    with lock_state(state):
        with pytest.raises(SystemExit, match="Stop it first"):
            delete_state(state)
        assert state.stat().st_mode & 0o077 == 0
    delete_state(state)
    assert not state.exists()
    delete_state(state)


def test_state_is_deleted_after_the_emulator_of_a_killed_service_has_ended(tmp_path: Path) -> None:
    state = tmp_path / "state"
    lock = lock_emulator_state(state / EMULATOR_STATE)
    with pytest.raises(SystemExit, match="still uses"):
        lock_emulator_state(state / EMULATOR_STATE, timeout_seconds=0)
    deleting = threading.Thread(target=delete_state, args=(state,))
    deleting.start()
    wait_until((state / "lock").exists, "the service's lock is taken")
    assert (state / EMULATOR_STATE).exists()
    os.close(lock)
    deleting.join()
    assert not state.exists()


def test_it_prints_its_url_shows_its_logs_stops_cleanly_and_keeps_its_state(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with running(tmp_path) as (process, client):
        turn = run_turn(client, "data", "Hello")
        check_logs_of_turn(tmp_path, str(turn.view.bridge_id), capsys)
        check_logs_end_when_the_pipe_is_closed(tmp_path)
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=BACKSTOP_SECONDS)
        assert process.returncode == 0
        with pytest.raises(SystemExit, match="make run"):
            logs.main(tmp_path)
    assert said.startswith(f"Starting …\n\n  Fermata is at {client.url}")
    assert "curl -sS" in said
    assert "State is kept" in said
    with running(tmp_path) as (_, client):
        assert len(client.get_conversation(str(turn.conversation_id))["messages"]) == 2
        second = run_until_it_ends(tmp_path, port=0)
    assert second.returncode == 1
    assert "runs already" in second.stderr


def check_logs_of_turn(state: Path, turn: str, capsys: pytest.CaptureFixture[str]) -> None:
    def read_lines() -> list[dict[str, Any]]:
        logs.main(state, turn)
        lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        events = {line.get("event") for line in lines}
        return lines if events >= {"ai.chat.started", "ai.chat.completed"} else []

    lines = wait_until(read_lines, "its beginning and its end are logged")
    assert [line["timestamp"] for line in lines] == sorted(line["timestamp"] for line in lines)


def check_logs_end_when_the_pipe_is_closed(state: Path) -> None:
    source = f"from pathlib import Path; from local import logs; logs.main(Path({str(state)!r}))"
    with subprocess.Popen(
        [sys.executable, "-c", source], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as reading:
        assert reading.stdout is not None
        assert reading.stderr is not None
        reading.stdout.close()
        assert reading.stderr.read() == ""
    assert reading.returncode == 0


def run_until_it_ends(state: Path, port: int) -> "subprocess.CompletedProcess[str]":
    """Run a service that cannot start."""
    return subprocess.run(
        [sys.executable, "-c", f"from pathlib import Path; from local import run; run.main(Path({str(state)!r}))"],
        cwd=ROOT,
        env=inherited_environment() | {"FERMATA_PORT": str(port)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_logs_are_refused_where_nothing_runs(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="make run"):
        logs.main(tmp_path / "elsewhere")


def test_a_taken_port_is_reported_in_a_sentence(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ended = run_until_it_ends(tmp_path, port)
    assert ended.returncode == 1
    assert f"Port {port} is taken" in ended.stderr


def test_a_second_service_on_the_same_state_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as first, lock_state(tmp_path):
        monkeypatch.setenv("FERMATA_PORT", str(first.getsockname()[1]))
        with pytest.raises(SystemExit, match="runs already in this folder"):
            run.main(tmp_path)


def test_the_demo_edits_a_copy_of_the_page_and_counts_what_it_took(
    cloud: LocalCloud, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(demo, "RESULT_PATH", tmp_path / "index.html")
    before = demo.PAGE_PATH.read_bytes()
    summary = demo.run_demo(cloud, demo.DEFAULT_PROMPT)
    assert demo.PAGE_PATH.read_bytes() == before
    assert b"pricing" in (tmp_path / "index.html").read_bytes()
    assert '+      <section class="section pricing"' in capsys.readouterr().out
    wanted = ["status", "bridgeId", "rounds", "browserTools", "serverTools", "transitions", "events", "seconds"]
    assert list(summary) == wanted
    assert summary["status"] == "done"
    assert summary["browserTools"] >= 3
    assert 1 < summary["transitions"] <= 2 * summary["rounds"] + 2
