"""Kill the emulator under writes and start it again: every write that it has acknowledged is there."""

import contextlib
import json
import random
import threading
from collections.abc import Callable, Collection
from functools import partial
from pathlib import Path

import pytest
from botocore.exceptions import BotoCoreError

from local import deploy
from local.emulator.object_files import NEXT_METADATA_SUFFIX, finish_object_writes
from tests.local.emulator_lab import EmulatorLab
from tests.local.kept_emulator import KeptEmulator, Writer, check_put, item, put_items, scan
from tests.waiting import wait_until

pytestmark = pytest.mark.cloud
BUCKET = "durable"


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
    assert sorted(file.name for file in content.parent.glob("page*")) == ["page", "page.meta.json"]

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
