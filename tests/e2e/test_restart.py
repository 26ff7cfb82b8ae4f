"""The whole of AWS goes away under open turns and comes back: stopped cleanly, or killed as by a power cut."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from fermata_client import RetryPolicy
from local.cloud import LocalCloud
from tests.e2e import turn_checks
from tests.e2e.conversation_driver import INSERT_CALL, OK_RESULT, ConversationDriver
from tests.e2e.demo_model_client import DemoModelClient, text_step, tool_call_step, unfinished_text_step
from tests.waiting import wait_until

pytestmark = pytest.mark.cloud
LONG = " ".join(f"word{number}" for number in range(100))


def kill_and_start(cloud: LocalCloud) -> None:
    wait_for_snapshot(cloud)
    cloud.kill_emulator()
    cloud.start_emulator()


OUTAGES: dict[str, Callable[[LocalCloud], None]] = {"restarted": LocalCloud.restart_emulator, "killed": kill_and_start}


@pytest.fixture(scope="module")
def frail(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCloud]:
    """A cloud of its own, which remembers what it knew."""
    with LocalCloud(tmp_path_factory.mktemp("frail"), keep_state=True, START_GRACE_SECONDS=1) as running:
        yield running


@pytest.fixture
def new_talk(frail: LocalCloud) -> Iterator[Callable[[], ConversationDriver]]:
    assert frail.model is not None
    model, resources, made = DemoModelClient(frail.model.url), frail.resources(), list[ConversationDriver]()

    def make() -> ConversationDriver:
        made.append(ConversationDriver(frail, resources, model, frail.token))
        return made[-1]

    yield make
    for talk in made:
        talk.close()
    model.close()


def wait_for_snapshot(frail: LocalCloud) -> None:
    """Waits until everything so far is on disk: a power cut takes what came after the last time that was done."""
    tables = frail.directory / "state" / "dynamodb.json"
    for _ in range(2):  # the first time may have begun before the last change
        before = tables.stat().st_mtime_ns if tables.exists() else 0
        frail.run_recovery_sweep()  # something happens, so there is something to write
        wait_until(partial(is_newer, tables, before), "the state is written")


def is_newer(file: Path, seen: int) -> bool:
    return file.exists() and file.stat().st_mtime_ns > seen


def has_second_execution(talk: ConversationDriver) -> bool:
    """Whether the sweep has moved the turn to its next execution."""
    return talk.cloud.run_recovery_sweep() >= 0 and f"{talk.bridge}-2" in turn_checks.describe_executions(
        talk.cloud, talk.bridge
    )


def is_done(talk: ConversationDriver) -> bool:
    return bool(talk.client.get_bridge(talk.bridge)["status"] == "done")


@pytest.mark.parametrize("how", OUTAGES)
def test_open_turns_go_on_in_a_new_execution_when_everything_is_back(
    new_talk: Callable[[], ConversationDriver], frail: LocalCloud, how: str
) -> None:
    paused, streaming = new_talk(), new_talk()
    request = paused.start_turn(tool_call_step(INSERT_CALL), text_step("Still here.")).wait_for_event("toolRequest")
    reader = streaming.start_turn(unfinished_text_step(LONG), text_step("One clean answer."))
    reader.wait_for_text(20)
    OUTAGES[how](frail)
    wait_until(
        lambda: has_second_execution(paused) and has_second_execution(streaming),
        "the sweep moves both to their next execution",
    )
    RetryPolicy().call_with_retries(
        lambda: paused.client.post_tool_result(paused.bridge, request["requestId"], OK_RESULT)
    )
    for talk, text in ((paused, "Still here."), (streaming, "One clean answer.")):
        wait_until(partial(is_done, talk), "the turn ends")
        assert list(turn_checks.describe_executions(frail, talk.bridge)) == [f"{talk.bridge}-1", f"{talk.bridge}-2"]
        assert turn_checks.check_turn(talk).text == text
