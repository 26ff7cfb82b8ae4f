"""Write to an emulator that keeps its state, kill it, and look at what its next process has."""

import itertools
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from botocore.exceptions import BotoCoreError

from local.aws_clients import get_client
from local.processes import EmulatorProcess

FULL_JOURNAL_ITEMS = 56
"""Of 300 kB, after which the journal is full."""


class KeptEmulator:
    """An emulator that keeps its state and can be killed and started again."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.process = EmulatorProcess(directory, keep_state=True)

    @property
    def endpoint(self) -> str:
        return self.process.endpoint

    @property
    def journals(self) -> list[Path]:
        return sorted(self.directory.glob("state/journal-*"), key=lambda file: int(file.name.partition("-")[2]))

    def client(self, service: str) -> Any:
        return get_client(service, self.endpoint)

    def kill_and_start(self, change_state: Callable[[], None] = lambda: None) -> None:
        self.process.kill()
        change_state()
        self.process = EmulatorProcess(self.directory, keep_state=True)

    def stop_and_start(self) -> None:
        self.process.stop()
        self.process = EmulatorProcess(self.directory, keep_state=True)

    def log(self) -> str:
        return (self.directory / "emulator.log").read_text()


class Writer:
    """Writes one thing after the other in a thread, until the emulator is gone, and counts the answers."""

    def __init__(self, write: Callable[[int], None], first: int) -> None:
        self.first = first
        self.acknowledged = 0
        self._write = write
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        for number in itertools.count(self.first):
            try:
                self._write(number)
            except (BotoCoreError, KeyError):  # KeyError: a response whose body the kill has cut off
                return
            self.acknowledged += 1

    def wait_for_end(self) -> range:
        self._thread.join()
        return range(self.first, self.first + self.acknowledged)


def item(partition: str, number: int, **attributes: str) -> dict[str, Any]:
    return {name: {"S": text} for name, text in {"pk": partition, "sk": f"{number:06}", **attributes}.items()}


def put_items(emulator: KeptEmulator, number: int) -> None:
    emulator.client("dynamodb").put_item(TableName="lab-notes", Item=item("put", number))


def scan(emulator: KeptEmulator, partition: str) -> list[dict[str, Any]]:
    pages = (
        emulator.client("dynamodb")
        .get_paginator("query")
        .paginate(
            TableName="lab-notes",
            KeyConditionExpression="pk = :pk",
            ExpressionAttributeValues={":pk": {"S": partition}},
        )
    )
    return [row for page in pages for row in page["Items"]]


def fill_journal(emulator: KeptEmulator, attempt: int) -> None:
    """Write as many bytes as a journal holds, and one item more."""
    for number in range(FULL_JOURNAL_ITEMS):
        row = item(f"full-{attempt}", number, text="x" * 300_000)
        emulator.client("dynamodb").put_item(TableName="lab-notes", Item=row)


def check_put(emulator: KeptEmulator, numbers: set[int]) -> None:
    lost = numbers - {int(row["sk"]["S"]) for row in scan(emulator, "put")}
    assert not lost, f"acknowledged and lost: {sorted(lost)}"
