"""The journal is replaced by snapshots, and whoever writes one when its emulator dies is waited for."""

import contextlib
import json
import os
import signal
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import psutil
import pytest

from local.emulator.snapshot_files import IncompleteSnapshotError, find_snapshot, publish_snapshot
from local.processes import EmulatorProcess
from tests.local.emulator_lab import EmulatorLab
from tests.local.kept_emulator import (
    FULL_JOURNAL_ITEMS,
    KeptEmulator,
    Writer,
    check_put,
    fill_journal,
    item,
    put_items,
    scan,
)
from tests.local.test_dynamodb_streams import batches, put, streamed_table
from tests.waiting import wait_until

pytestmark = pytest.mark.cloud

MAX_JOURNALS_BYTES = 20_000_000
"""A full journal, and what is written while a snapshot takes its place."""


def test_the_journal_does_not_grow_without_end(kept: KeptEmulator) -> None:
    """A megabyte is written again and again to the same items."""
    EmulatorLab(kept.endpoint)
    for number in range(160):
        row = item("large", number % 4, text="x" * 300_000)
        kept.client("dynamodb").put_item(TableName="lab-notes", Item=row)
        wait_until(lambda: count_journal_bytes(kept) < MAX_JOURNALS_BYTES, "a snapshot takes a full journal's place")
    assert len(kept.journals) < 4
    kept.kill_and_start()
    assert len(scan(kept, "large")) == 4


def count_journal_bytes(emulator: KeptEmulator) -> int:
    sizes = []
    for file in emulator.journals:
        with contextlib.suppress(FileNotFoundError):  # a snapshot has just taken its place
            sizes.append(file.stat().st_size)
    return sum(sizes)


def test_a_clean_stop_while_a_large_snapshot_is_written_loses_nothing(kept: KeptEmulator) -> None:
    """It is written because the journal is full. Nobody waits for it when the emulator stops."""
    EmulatorLab(kept.endpoint)
    for attempt in range(2):
        before = list_snapshots(kept)
        fill_journal(kept, attempt)
        wait_until(partial(is_snapshot_begun, kept, before), "a snapshot is being written")
        kept.stop_and_start()
        assert len(scan(kept, f"full-{attempt}")) == FULL_JOURNAL_ITEMS
    assert [len(scan(kept, f"full-{attempt}")) for attempt in range(2)] == [FULL_JOURNAL_ITEMS] * 2
    assert not list(kept.directory.glob("state/unfinished*"))


def list_snapshots(emulator: KeptEmulator) -> set[Path]:
    return set(emulator.directory.glob("state/snapshot-*"))


def is_snapshot_begun(emulator: KeptEmulator, before: set[Path]) -> bool:
    """Return whether a snapshot is being written. On a busy machine it may have its name when this looks."""
    return any(emulator.directory.glob("state/unfinished*")) or list_snapshots(emulator) != before


def test_an_emulator_waits_for_the_one_before_that_outlives_its_parent(kept: KeptEmulator) -> None:
    """The one before acknowledges writes to its end and saves once more."""
    EmulatorLab(kept.endpoint)
    fill_journal(kept, 0)
    writer = Writer(partial(put_items, kept), first=0)
    wait_until(lambda: writer.acknowledged > 20, "some writes are acknowledged")
    before = kept.process
    os.kill(before.pid, signal.SIGSTOP)  # else it may have ended before the next one looks
    before.request_stop()
    with ThreadPoolExecutor(1) as pool:
        started = pool.submit(EmulatorProcess, kept.directory, keep_state=True)
        try:
            wait_until(lambda: "Waiting for the emulator" in kept.log(), "the next emulator waits")
        finally:
            os.kill(before.pid, signal.SIGCONT)
        kept.process = started.result()
    assert before.is_running() is False
    numbers = set(writer.wait_for_end())
    check_put(kept, numbers)
    kept.kill_and_start()
    check_put(kept, numbers)
    before.stop()


def test_an_emulator_waits_for_the_snapshot_of_a_killed_one(kept: KeptEmulator) -> None:
    """Only the server is killed. The process that writes the snapshot outlives it, and holds the lock."""
    EmulatorLab(kept.endpoint)
    writer = Writer(partial(put_large_item, kept), first=0)
    snapshot_process = wait_until(partial(suspend_snapshot_process, kept.process.pid), "a snapshot is being written")
    os.kill(kept.process.pid, signal.SIGKILL)
    numbers = set(writer.wait_for_end())
    with ThreadPoolExecutor(1) as pool:
        started = pool.submit(EmulatorProcess, kept.directory, keep_state=True)
        wait_until(lambda: "Waiting for the emulator" in kept.log(), "the next emulator waits")
        snapshot_process.resume()
        before, kept.process = kept.process, started.result()
    before.kill()
    assert numbers <= {int(row["sk"]["S"]) for row in scan(kept, "large")}


def put_large_item(emulator: KeptEmulator, number: int) -> None:
    row = item("large", number, text="x" * 300_000)
    emulator.client("dynamodb").put_item(TableName="lab-notes", Item=row)


def suspend_snapshot_process(emulator_pid: int) -> psutil.Process | None:
    """Suspend the forked copy of an emulator, if there is one."""
    emulator = psutil.Process(emulator_pid)
    with contextlib.suppress(psutil.NoSuchProcess):
        for child in emulator.children():
            if child.cmdline() == emulator.cmdline():
                child.suspend()
                if wait_until(partial(read_last_status, child), "it stands still") == psutil.STATUS_STOPPED:
                    return child
    return None


def read_last_status(process: psutil.Process) -> str:
    """Return the status of a process that stands still or has ended, and else nothing."""
    status = str(process.status())
    return status if status in (psutil.STATUS_STOPPED, psutil.STATUS_ZOMBIE) else ""


def test_a_snapshot_that_lacks_a_file_is_not_loaded_and_replaces_none(tmp_path: Path) -> None:
    write_snapshot(tmp_path, 3)
    write_snapshot(tmp_path, 5)
    assert find_snapshot(tmp_path).number == 5
    (tmp_path / "snapshot-5" / "kms.json").unlink()
    assert find_snapshot(tmp_path).number == 3
    with pytest.raises(IncompleteSnapshotError):
        write_snapshot(tmp_path, 7, missing_bytes=1)
    assert find_snapshot(tmp_path).number == 3


def write_snapshot(state: Path, number: int, missing_bytes: int = 0) -> None:
    unfinished = state / f"unfinished-{number}"
    unfinished.mkdir()
    (unfinished / "kms.json").write_bytes(b"{}")
    (unfinished / "dynamodb.json").write_bytes(b"{}")
    sizes = {"kms.json": 2, "dynamodb.json": 2 + missing_bytes}
    publish_snapshot(unfinished, sizes, state / f"snapshot-{number}")


def test_a_stream_goes_on_after_a_kill_with_the_records_that_were_not_delivered(kept: KeptEmulator) -> None:
    lab = EmulatorLab(kept.endpoint)
    table = streamed_table(lab, BatchSize=2, MaximumBatchingWindowInSeconds=300)
    put(lab, table, "a", "b", "c")
    wait_until(partial(is_batch_processed, kept), "the first batch is processed")
    kept.process.save_snapshot()
    put(lab, table, "d", "e")
    kept.kill_and_start()
    lab.connect(kept.endpoint)
    put(lab, table, "f")
    wait_until(lambda: set(delivered(lab, table)) == set("abcdef"), "the others are delivered")
    assert delivered(lab, table).count("a") == 1, "what was processed before the snapshot is not delivered again"


def delivered(lab: EmulatorLab, table: str) -> list[str]:
    return [key for batch in batches(lab, table) for key in batch]


def is_batch_processed(emulator: KeptEmulator) -> bool:
    [mapping] = emulator.client("lambda").list_event_source_mappings()["EventSourceMappings"]
    return bool(mapping["LastProcessingResult"] == "OK - 2 records")


def test_a_state_from_before_the_journal_is_loaded_and_its_streams_go_on(kept: KeptEmulator) -> None:
    lab = EmulatorLab(kept.endpoint)
    table = streamed_table(lab)
    put(lab, table, "a", "b")
    wait_until(lambda: {"a", "b"} == set(delivered(lab, table)), "both are delivered")
    kept.process.save_snapshot()

    def forget_what_is_new() -> None:
        state = kept.directory / "state"
        for journal in kept.journals:
            journal.unlink()
        [snapshot] = state.glob("snapshot-*")
        for file in snapshot.iterdir():
            file.rename(state / file.name)
        snapshot.rmdir()
        tables = json.loads((state / "dynamodb.json").read_text())
        del tables["payload"]["fermataStreams"]
        (state / "dynamodb.json").write_text(json.dumps(tables))

    kept.kill_and_start(forget_what_is_new)
    lab.connect(kept.endpoint)
    put(lab, table, "c")
    wait_until(lambda: ["c"] in batches(lab, table), "the new record is delivered")
    kept.process.save_snapshot()
    assert not list(kept.directory.glob("state/*.json"))
