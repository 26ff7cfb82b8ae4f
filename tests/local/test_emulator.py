"""Test the emulator as a process: where it listens, what it saves, and what it leaves behind."""

import contextlib
import itertools
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from local.aws_clients import get_client
from local.processes import EMULATOR_PYTHON, ROOT, DidNotStartError, EmulatorProcess
from tests.local.emulator_lab import EmulatorLab
from tests.waiting import wait_until

pytestmark = pytest.mark.cloud
LISTEN = "0A"
LOOPBACK = ("0100007F", "00000000000000000000000001000000")


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="reads the kernel's table of sockets")
def test_it_listens_on_the_loopback_interface_only(lab: EmulatorLab, emulator: EmulatorProcess) -> None:
    get_client("sqs", lab.endpoint).create_queue(QueueName="wake-more-services")
    get_client("events", lab.endpoint).list_rules()
    addresses = listening(emulator.pid)
    assert addresses
    assert all(address.startswith(LOOPBACK) for address in addresses)


def listening(pid: int) -> list[str]:
    links = [str(entry.readlink()) for entry in Path(f"/proc/{pid}/fd").iterdir() if entry.is_symlink()]
    mine = {link[8:-1] for link in links if link.startswith("socket:[")}
    rows = [
        line.split() for table in ("tcp", "tcp6") for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]
    ]
    return [row[1] for row in rows if row[3] == LISTEN and row[9] in mine]


@pytest.fixture
def keeping(tmp_path: Path) -> Iterator[list[EmulatorProcess]]:
    """Emulators that save their state. The last one is stopped at the end."""
    started = [EmulatorProcess(tmp_path, keep_state=True)]
    yield started
    started[-1].stop()


def make_table_with_an_item(endpoint: str) -> None:
    EmulatorLab(endpoint)
    item = {"pk": {"S": "kept"}, "sk": {"S": "1"}, "what": {"S": "x"}, "pid": {"N": "1"}, "event": {"S": "{}"}}
    get_client("dynamodb", endpoint).put_item(TableName="lab-notes", Item=item)


def kept(endpoint: str) -> int:
    return int(get_client("dynamodb", endpoint).scan(TableName="lab-notes")["Count"])


def test_a_clean_stop_saves_all_state(keeping: list[EmulatorProcess], tmp_path: Path) -> None:
    make_table_with_an_item(keeping[0].endpoint)
    keeping[0].stop()
    keeping.append(EmulatorProcess(tmp_path, keep_state=True))
    assert kept(keeping[-1].endpoint) == 1


def test_a_kill_loses_nothing_that_was_acknowledged(keeping: list[EmulatorProcess], tmp_path: Path) -> None:
    make_table_with_an_item(keeping[0].endpoint)
    keeping[0].kill()
    keeping.append(EmulatorProcess(tmp_path, keep_state=True))
    assert kept(keeping[-1].endpoint) == 1
    assert get_client("lambda", keeping[-1].endpoint).list_functions()["Functions"][0]["FunctionName"] == "lab"


def test_messages_of_a_queue_reach_their_function_after_a_start_on_another_port(
    keeping: list[EmulatorProcess], tmp_path: Path
) -> None:
    EmulatorLab(keeping[0].endpoint)
    url = get_client("sqs", keeping[0].endpoint).create_queue(QueueName="kept")["QueueUrl"]
    port = keeping[0].endpoint.rpartition(":")[2]
    mapping = {"EventSourceArn": "arn:aws:sqs:us-east-1:000000000000:kept", "FunctionName": "lab"}
    get_client("lambda", keeping[0].endpoint).create_event_source_mapping(**mapping)
    keeping[0].stop()
    keeping.append(EmulatorProcess(tmp_path, keep_state=True))
    assert keeping[-1].endpoint != keeping[0].endpoint
    queue = get_client("sqs", keeping[-1].endpoint)
    assert f":{port}/" in queue.get_queue_url(QueueName="kept")["QueueUrl"]
    queue.send_message(QueueUrl=url, MessageBody="{}")
    names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]

    def is_empty() -> bool:
        return set(queue.get_queue_attributes(QueueUrl=url, AttributeNames=names)["Attributes"].values()) == {"0"}

    wait_until(is_empty, "the message is handed to the function")


def test_an_execution_that_ran_during_a_restart_has_failed(keeping: list[EmulatorProcess], tmp_path: Path) -> None:
    lab = EmulatorLab(keeping[0].endpoint)
    execution = lab.start_execution(lab.make_callback_machine())
    [note] = lab.wait_for_notes(execution, "start")
    keeping[0].stop()
    keeping.append(EmulatorProcess(tmp_path, keep_state=True))
    states = get_client("stepfunctions", keeping[-1].endpoint)
    assert states.describe_execution(executionArn=execution)["status"] == "FAILED"
    with pytest.raises(states.exceptions.TaskDoesNotExist):
        states.send_task_success(taskToken=note.token, output="{}")


def test_writes_are_accepted_during_a_snapshot(keeping: list[EmulatorProcess]) -> None:
    """An item is put completely during the life of one process that writes the state."""
    make_table_with_an_item(keeping[0].endpoint)
    dynamodb, numbers, enough = get_client("dynamodb", keeping[0].endpoint), itertools.count(), threading.Event()

    def save_again_and_again() -> None:
        while not enough.is_set():
            keeping[0].save_snapshot()

    def is_put_during_a_snapshot() -> bool:
        writers = children(keeping[0].pid)
        item = {"pk": {"S": "many"}, "sk": {"S": f"{next(numbers):05}"}, "text": {"S": "x" * 20_000}}
        dynamodb.put_item(TableName="lab-notes", Item=item)
        return bool(writers & children(keeping[0].pid))

    saving = threading.Thread(target=save_again_and_again)
    saving.start()
    try:
        wait_until(is_put_during_a_snapshot, "an item is put during a snapshot")
    finally:
        enough.set()
        saving.join()


def children(pid: int) -> set[int]:
    found = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            if int(stat.read_text().rpartition(")")[2].split()[1]) == pid:
                found.add(int(stat.parent.name))
    return found


def test_no_process_and_no_file_is_left_after_a_kill(tmp_path: Path) -> None:
    running = EmulatorProcess(tmp_path)
    lab = EmulatorLab(running.endpoint)
    lab.invoke_function("lab", {})
    [process] = running.list_function_processes()["lab"]
    running.kill()
    wait_until(lambda: not Path(f"/proc/{process['pid']}").exists(), "the function's process is gone")
    again = EmulatorProcess(tmp_path)
    assert [entry.name for entry in (tmp_path / "work").rglob("lab-*")] == []
    again.stop()
    assert list((tmp_path / "work").iterdir()) == []


def test_the_emulator_ends_with_its_parent(tmp_path: Path) -> None:
    source = (
        "import sys, time; from pathlib import Path; from local.processes import EmulatorProcess\n"
        f"print(EmulatorProcess(Path({str(tmp_path)!r})).pid, flush=True); time.sleep(3600)"
    )
    parent = subprocess.Popen([sys.executable, "-c", source], stdout=subprocess.PIPE, cwd=ROOT, text=True)
    assert parent.stdout is not None
    with parent.stdout:
        pid = int(parent.stdout.readline())
    parent.kill()
    parent.wait()
    wait_until(lambda: not running(pid), "the emulator is gone")


def running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_taken_port_is_reported(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(DidNotStartError, match="in use"):
        EmulatorProcess(tmp_path, port=taken.getsockname()[1])


SABOTAGE = """
import os
os.environ.update(GATEWAY_PORT="1", LOG_LEVEL="ERROR")
from ministack.services import {module}
def {name}(): "another release"
{module}.{name} = {name}
from local.emulator.patches import {patch}, registry
registry.apply_patches()
"""


@pytest.mark.parametrize(
    ("module", "name", "patch"),
    [
        ("stepfunctions", "_execute_task", "callback_tasks"),
        ("stepfunctions", "_call_lambda", "callback_tasks"),
        ("stepfunctions", "_run_execution", "executions"),
        ("stepfunctions", "_send_task_heartbeat", "task_tokens"),
        ("lambda_svc", "_execute_function_warm", "lambda_functions"),
        ("dynamodb", "_query", "dynamodb_expression_cache"),
    ],
)
def test_a_patch_refuses_code_it_does_not_know(module: str, name: str, patch: str, tmp_path: Path) -> None:
    program = tmp_path / "sabotage.py"
    program.write_text(SABOTAGE.format(module=module, name=name, patch=patch))
    ended = subprocess.run(
        [EMULATOR_PYTHON, program], capture_output=True, text=True, env={"PYTHONPATH": str(ROOT)}, check=False
    )
    assert ended.returncode == 1
    assert f"ministack.services.{module}.{name} has changed" in ended.stderr
    assert "update their digests" in ended.stderr
