"""Test which changes the lines of the emulator's journal hold."""

import asyncio
import threading
from pathlib import Path

from local.emulator.journal import Change, Journal, list_journals, read_changes

FIRST_HALF, SECOND_HALF = ["item", "table", "a", "", {}], ["item", "table", "b", "", {}]
ENDED = ["execution", "arn", {"status": "SUCCEEDED"}]


def test_a_thread_does_not_write_half_of_a_transaction(tmp_path: Path) -> None:
    async def make_transaction_while_execution_ends() -> None:
        journal = open_journal(tmp_path)
        journal.append(*FIRST_HALF)
        append_in_thread(journal)
        assert read_all_changes(tmp_path) == []
        journal.append(*SECOND_HALF)
        await asyncio.sleep(0)

    asyncio.run(make_transaction_while_execution_ends())
    assert read_all_changes(tmp_path) == [FIRST_HALF, ENDED, SECOND_HALF]
    [(_, file)] = list_journals(tmp_path)
    assert file.read_bytes().count(b"\n") == 1


def test_what_changes_in_a_thread_is_written_without_a_request(tmp_path: Path) -> None:
    async def end_execution() -> None:
        append_in_thread(open_journal(tmp_path))
        await asyncio.sleep(0)
        assert read_all_changes(tmp_path) == [ENDED]

    asyncio.run(end_execution())


def test_what_changes_in_a_thread_after_the_loop_is_written(tmp_path: Path) -> None:
    async def open_and_return() -> Journal:
        return open_journal(tmp_path)

    append_in_thread(asyncio.run(open_and_return()))
    assert read_all_changes(tmp_path) == [ENDED]


def open_journal(directory: Path) -> Journal:
    journal = Journal()
    journal.open(directory, asyncio.get_running_loop())
    return journal


def append_in_thread(journal: Journal) -> None:
    thread = threading.Thread(target=journal.append, args=ENDED)
    thread.start()
    thread.join()


def read_all_changes(directory: Path) -> list[Change]:
    return [change for _, file in list_journals(directory) for change in read_changes(file)]
