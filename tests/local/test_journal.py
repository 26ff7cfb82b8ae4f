"""Write the journal of the emulator's state."""

import threading
from pathlib import Path

from local.emulator.journal import Journal, list_journals, read_changes


def append_in_thread(journal: Journal, *change: object) -> None:
    thread = threading.Thread(target=journal.append, args=change)
    thread.start()
    thread.join()


def read_all(directory: Path) -> list[list[object]]:
    return [change for _, file in list_journals(directory) for change in read_changes(file)]


def test_a_thread_that_ends_an_execution_writes_no_half_transaction(tmp_path: Path) -> None:
    journal = Journal()
    journal.open(tmp_path)
    journal.append("item", "table", "a", "", {"half": 1})
    append_in_thread(journal, "execution", "arn", {"status": "SUCCEEDED"})
    assert read_all(tmp_path) == [["execution", "arn", {"status": "SUCCEEDED"}]]
    journal.append("item", "table", "b", "", {"half": 2})
    journal.flush()
    (line,) = (tmp_path / "journal-1").read_bytes().splitlines()[1:]
    assert b"half" in line
    assert len(read_all(tmp_path)) == 3


def test_a_later_change_of_a_thread_stays_behind_an_earlier_one_of_the_same_kind(tmp_path: Path) -> None:
    journal = Journal()
    journal.open(tmp_path)
    journal.append("execution", "arn", {"status": "RUNNING"})
    append_in_thread(journal, "execution", "arn", {"status": "SUCCEEDED"})
    journal.flush()
    assert [change[2] for change in read_all(tmp_path)] == [{"status": "RUNNING"}, {"status": "SUCCEEDED"}]
