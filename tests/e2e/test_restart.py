"""Restart and kill the emulated AWS under open turns. They continue afterwards."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from fermata_client import RetryPolicy
from local.cloud import LocalCloud
from tests.e2e import turn_checks
from tests.e2e.chat_session import INSERT_CALL, OK_RESULT, ChatSession
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
    """A cloud of this module that saves its state."""
    with LocalCloud(tmp_path_factory.mktemp("frail"), keep_state=True, START_GRACE_SECONDS=1) as running:
        yield running


@pytest.fixture
def new_session(frail: LocalCloud) -> Iterator[Callable[[], ChatSession]]:
    assert frail.model is not None
    model, resources, made = DemoModelClient(frail.model.url), frail.resources(), list[ChatSession]()

    def make() -> ChatSession:
        made.append(ChatSession(frail, resources, model, frail.token))
        return made[-1]

    yield make
    for session in made:
        session.close()
    model.close()


def wait_for_snapshot(frail: LocalCloud) -> None:
    """Wait until all changes so far are on disk, because a kill loses later ones."""
    tables = frail.directory / "state" / "dynamodb.json"
    for _ in range(2):  # the first time may have begun before the last change
        before = tables.stat().st_mtime_ns if tables.exists() else 0
        frail.run_recovery_sweep()  # something happens, so there is something to write
        wait_until(partial(is_newer, tables, before), "the state is written")


def is_newer(file: Path, seen: int) -> bool:
    return file.exists() and file.stat().st_mtime_ns > seen


def has_second_execution(session: ChatSession) -> bool:
    """Whether the sweep has moved the turn to its next execution."""
    return session.cloud.run_recovery_sweep() >= 0 and f"{session.bridge}-2" in turn_checks.describe_executions(
        session.cloud, session.bridge
    )


def is_done(session: ChatSession) -> bool:
    return bool(session.client.get_bridge(session.bridge)["status"] == "done")


@pytest.mark.parametrize("how", OUTAGES)
def test_open_turns_continue_in_a_new_execution_after_an_outage(
    new_session: Callable[[], ChatSession], frail: LocalCloud, how: str
) -> None:
    paused, streaming = new_session(), new_session()
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
    for session, text in ((paused, "Still here."), (streaming, "One clean answer.")):
        wait_until(partial(is_done, session), "the turn ends")
        assert list(turn_checks.describe_executions(frail, session.bridge)) == [
            f"{session.bridge}-1",
            f"{session.bridge}-2",
        ]
        assert turn_checks.check_turn(session).text == text
