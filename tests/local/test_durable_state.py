"""Kill the emulator under writes and start it again: every write that it has acknowledged is there."""

import contextlib
import itertools
import json
import os
import random
import signal
import threading
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest
from botocore.exceptions import BotoCoreError

from local import deploy
from local.aws_clients import get_client
from local.emulator.object_files import NEXT_METADATA_SUFFIX, finish_object_writes
from local.emulator.snapshot_files import IncompleteSnapshotError, find_snapshot, publish_snapshot
from local.processes import EmulatorProcess
from tests.local.emulator_lab import EmulatorLab
from tests.local.test_dynamodb_streams import batches, put, streamed_table
from tests.waiting import wait_until

pytestmark = pytest.mark.cloud
BUCKET = "durable"
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


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[KeptEmulator]:
    emulator = KeptEmulator(tmp_path)
    yield emulator
    emulator.process.stop()


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


def change_items(emulator: KeptEmulator, number: int) -> None:
    emulator.client("dynamodb").update_item(
        TableName="lab-notes",
        Key=item("counter", 0),
        UpdateExpression="ADD countOf :one SET lastOf = :number",
        ExpressionAttributeValues={":one": {"N": "1"}, ":number": {"N": str(number)}},
    )


def move_items(emulator: KeptEmulator, number: int) -> None:
    """Delete an item and put its successor, in one transaction. A number is left out after a kill."""
    emulator.client("dynamodb").transact_write_items(
        TransactItems=[
            {"Delete": {"TableName": "lab-notes", "Key": item("moved", number - 1)}},
            {"Delete": {"TableName": "lab-notes", "Key": item("moved", number - 2)}},
            {"Put": {"TableName": "lab-notes", "Item": item("moved", number)}},
            {"Put": {"TableName": "lab-notes", "Item": item("moves", number)}},
        ]
    )


def put_objects(emulator: KeptEmulator, number: int) -> None:
    emulator.client("s3").put_object(
        Bucket=BUCKET,
        Key=f"a/{number}",
        Body=b"%d" % number,
        ContentType="text/plain",
        Metadata={"number": f"{number}"},
    )
    if number % 2:
        emulator.client("s3").delete_object(Bucket=BUCKET, Key=f"a/{number}")


def start_executions(emulator: KeptEmulator, number: int) -> None:
    states = emulator.client("stepfunctions")
    machine = states.list_state_machines()["stateMachines"][0]["stateMachineArn"]
    states.start_execution(stateMachineArn=machine, name=f"e-{number}", input=json.dumps({"number": number}))


def make_keys(emulator: KeptEmulator, number: int) -> None:
    kms = emulator.client("kms")
    key = kms.create_key(Description=f"{number}")["KeyMetadata"]["KeyId"]
    sealed = kms.encrypt(KeyId=key, Plaintext=b"%d" % number)["CiphertextBlob"]
    emulator.client("s3").put_object(Bucket=BUCKET, Key=f"sealed/{number}", Body=sealed)


def check_put(emulator: KeptEmulator, numbers: set[int]) -> None:
    assert numbers <= {int(row["sk"]["S"]) for row in scan(emulator, "put")}


def check_changed(emulator: KeptEmulator, numbers: set[int]) -> None:
    [row] = scan(emulator, "counter")
    assert int(row["lastOf"]["N"]) >= max(numbers)
    assert int(row["countOf"]["N"]) >= len(numbers)


def check_moved(emulator: KeptEmulator, numbers: set[int]) -> None:
    [last] = (int(row["sk"]["S"]) for row in scan(emulator, "moved"))
    moves = {int(row["sk"]["S"]) for row in scan(emulator, "moves")}
    assert last == max(moves)
    assert numbers <= moves


def check_objects(emulator: KeptEmulator, numbers: set[int]) -> None:
    s3 = emulator.client("s3")
    listed = s3.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix="a/")
    keys = {int(entry["Key"][2:]) for page in listed for entry in page.get("Contents", [])}
    assert {number for number in numbers if number % 2 == 0} <= keys
    assert not {number for number in numbers if number % 2} & keys
    for number in sorted(keys)[-3:]:
        stored = s3.get_object(Bucket=BUCKET, Key=f"a/{number}")
        assert stored["Body"].read() == b"%d" % number
        assert (stored["ContentType"], stored["Metadata"]) == ("text/plain", {"number": f"{number}"})


def check_executions(emulator: KeptEmulator, numbers: set[int]) -> None:
    states = emulator.client("stepfunctions")
    machine = states.list_state_machines()["stateMachines"][0]["stateMachineArn"]
    for number in numbers:
        arn = f"{machine.replace(':stateMachine:', ':execution:')}:e-{number}"
        assert states.describe_execution(executionArn=arn)["status"] == "FAILED"
        with pytest.raises(states.exceptions.ExecutionAlreadyExists):
            states.start_execution(stateMachineArn=machine, name=f"e-{number}", input="{}")


def check_keys(emulator: KeptEmulator, numbers: set[int]) -> None:
    for number in numbers:
        sealed = emulator.client("s3").get_object(Bucket=BUCKET, Key=f"sealed/{number}")["Body"].read()
        assert emulator.client("kms").decrypt(CiphertextBlob=sealed)["Plaintext"] == b"%d" % number


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


Write = Callable[[KeptEmulator, int], None]
Check = Callable[[KeptEmulator, set[int]], None]
BACKENDS: dict[Write, Check] = {
    put_items: check_put,
    change_items: check_changed,
    move_items: check_moved,
    put_objects: check_objects,
    start_executions: check_executions,
    make_keys: check_keys,
}


@pytest.mark.parametrize("seed", range(2))
def test_every_acknowledged_write_survives_a_kill(kept: KeptEmulator, seed: int) -> None:
    """All backends are written to at once. Each new key causes a snapshot, so the journal is replaced meanwhile."""
    lab = EmulatorLab(kept.endpoint)
    lab.make_machine({"StartAt": "Wait", "States": {"Wait": {"Type": "Wait", "Seconds": 3600, "End": True}}})
    kept.client("s3").create_bucket(Bucket=BUCKET)
    chance = random.Random(seed)
    numbers: dict[Write, set[int]] = {write: set() for write in BACKENDS}
    for _ in range(3):
        writers = {
            write: Writer(partial(write, kept), first=max(acknowledged, default=0) + 2)
            for write, acknowledged in numbers.items()
        }
        wait_until(partial(are_acknowledged, writers.values(), chance.randint(1, 150)), "enough are acknowledged")
        kept.process.kill()
        for write, writer in writers.items():
            numbers[write] |= set(writer.wait_for_end())
        kept.kill_and_start()
        for write, check in BACKENDS.items():
            check(kept, numbers[write])


def are_acknowledged(writers: Collection[Writer], count: int) -> bool:
    """Return whether each backend has acknowledged a write, and all of them so many."""
    counts = [writer.acknowledged for writer in writers]
    return min(counts) > 0 and sum(counts) >= count


def test_a_transaction_is_kept_whole_or_not_at_all(kept: KeptEmulator) -> None:
    EmulatorLab(kept.endpoint)
    move_items(kept, 1)
    move_items(kept, 2)

    def tear_last_line() -> None:
        last = kept.journals[-1]
        last.write_bytes(last.read_bytes()[:-20])

    kept.kill_and_start(tear_last_line)
    assert [row["sk"]["S"] for row in scan(kept, "moved")] == ["000001"]
    assert [row["sk"]["S"] for row in scan(kept, "moves")] == ["000001"]
    assert "is damaged and left out" in kept.log()
    move_items(kept, 2)
    kept.kill_and_start()
    check_moved(kept, {1, 2})


@pytest.mark.parametrize("is_content_new", [False, True])
def test_a_write_of_an_object_that_a_kill_has_cut_is_kept_whole_or_not_at_all(
    kept: KeptEmulator, is_content_new: bool
) -> None:
    """The kill came before, or behind, the file of the content got its place."""
    kept.client("s3").create_bucket(Bucket=BUCKET)
    put_version(kept, "old")
    content = next(kept.directory.rglob("page"))
    metadata = content.with_name("page.meta.json")
    before = {file: file.read_bytes() for file in (content, metadata)}
    put_version(kept, "new")

    def cut_the_write() -> None:
        metadata.rename(content.with_name("page" + NEXT_METADATA_SUFFIX))
        metadata.write_bytes(before[metadata])
        if not is_content_new:
            content.write_bytes(before[content])

    kept.kill_and_start(cut_the_write)
    stored = kept.client("s3").get_object(Bucket=BUCKET, Key="page")
    version = "new" if is_content_new else "old"
    assert (stored["Body"].read(), stored["ContentType"]) == (version.encode(), f"text/{version}")
    assert stored["Metadata"] == {"version": version}
    assert not list(kept.directory.rglob(f"*{NEXT_METADATA_SUFFIX}"))


def put_version(emulator: KeptEmulator, version: str) -> None:
    emulator.client("s3").put_object(
        Bucket=BUCKET,
        Key="page",
        Body=version.encode(),
        ContentType=f"text/{version}",
        Metadata={"version": version},
    )


def test_metadata_that_a_kill_has_cut_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "page").write_text("new")
    (tmp_path / ("page" + NEXT_METADATA_SUFFIX)).write_text('{"etag": "')
    finish_object_writes(tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["page"]


def test_changes_behind_a_damaged_line_are_kept(kept: KeptEmulator) -> None:
    EmulatorLab(kept.endpoint)
    for number in range(3):
        put_items(kept, number)

    def damage_second_line() -> None:
        lines = kept.journals[-1].read_bytes().splitlines(keepends=True)
        kept.journals[-1].write_bytes(b"".join([*lines[:-2], lines[-2].replace(b"put", b"?!t"), lines[-1]]))

    kept.kill_and_start(damage_second_line)
    assert [int(row["sk"]["S"]) for row in scan(kept, "put")] == [0, 2]


def test_the_journal_does_not_grow_without_end(kept: KeptEmulator) -> None:
    """A megabyte is written again and again to the same items."""
    EmulatorLab(kept.endpoint)
    sizes = []
    for number in range(160):
        row = item("large", number % 4, text="x" * 300_000)
        kept.client("dynamodb").put_item(TableName="lab-notes", Item=row)
        sizes.append(sum(file.stat().st_size for file in kept.journals if file.exists()))
    assert max(sizes) < 40_000_000
    assert len(kept.journals) < 4
    kept.kill_and_start()
    assert len(scan(kept, "large")) == 4


def test_a_clean_stop_while_a_large_snapshot_is_written_loses_nothing(kept: KeptEmulator) -> None:
    """It is written because the journal is full. Nobody waits for it when the emulator stops."""
    EmulatorLab(kept.endpoint)
    for attempt in range(2):
        fill_journal(kept, attempt)
        wait_until(lambda: list(kept.directory.glob("state/unfinished*")), "a snapshot is being written")
        kept.stop_and_start()
        assert len(scan(kept, f"full-{attempt}")) == FULL_JOURNAL_ITEMS
    assert [len(scan(kept, f"full-{attempt}")) for attempt in range(2)] == [FULL_JOURNAL_ITEMS] * 2
    assert not list(kept.directory.glob("state/unfinished*"))


def fill_journal(emulator: KeptEmulator, attempt: int) -> None:
    """Write as many bytes as a journal holds, and one item more."""
    for number in range(FULL_JOURNAL_ITEMS):
        row = item(f"full-{attempt}", number, text="x" * 300_000)
        emulator.client("dynamodb").put_item(TableName="lab-notes", Item=row)


def test_an_emulator_waits_for_the_one_before_that_outlives_its_parent(kept: KeptEmulator) -> None:
    """The one before acknowledges writes to its end and saves once more."""
    EmulatorLab(kept.endpoint)
    fill_journal(kept, 0)
    writer = Writer(partial(put_items, kept), first=0)
    wait_until(lambda: writer.acknowledged > 20, "some writes are acknowledged")
    before = kept.process
    before.request_stop()
    kept.process = EmulatorProcess(kept.directory, keep_state=True)
    assert before.is_running() is False
    numbers = set(writer.wait_for_end())
    assert "Waiting for the emulator" in kept.log()
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
                return child
    return None


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


@pytest.mark.parametrize("kill_at", [1, 12])
def test_a_deployment_that_was_killed_can_be_repeated(kept: KeptEmulator, kill_at: int) -> None:
    """It is killed after some of its events."""

    def deploy_once() -> None:
        with contextlib.suppress(BotoCoreError):
            deploy.deploy_stack(kept.endpoint, deploy.EMULATED_PARAMETERS)

    def count_events() -> bool:
        try:
            events = kept.client("cloudformation").describe_stack_events(StackName=deploy.STACK_NAME)["StackEvents"]
        except Exception:  # noqa: BLE001  there is no stack yet
            return False
        return len(events) >= kill_at

    thread = threading.Thread(target=deploy_once)
    thread.start()
    wait_until(count_events, "the deployment has begun")
    kept.process.kill()
    thread.join()
    kept.kill_and_start()
    outputs = deploy.deploy_stack(kept.endpoint, deploy.EMULATED_PARAMETERS)
    kept.kill_and_start()
    assert deploy.deploy_stack(kept.endpoint, deploy.EMULATED_PARAMETERS) == outputs
