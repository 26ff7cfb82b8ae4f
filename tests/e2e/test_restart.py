"""Kill and restart the emulated AWS, and everything, under open turns. They go on, and are counted once."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from fermata.usage.audit.reconciliation import reconcile_usage
from fermata_client import FermataClient, RetryPolicy, follow_turn, run_turn
from local.cloud import LocalCloud
from local.seed import TENANT, LocalResources
from tests.e2e import turn_checks
from tests.e2e.chat_session import INSERT_CALL, OK_RESULT, ChatSession
from tests.e2e.demo_model_client import DemoModelClient, text_step, tool_call_step, unfinished_text_step
from tests.waiting import wait_until

pytestmark = pytest.mark.cloud
LONG = " ".join(f"word{number}" for number in range(100))


def kill_and_start(cloud: LocalCloud) -> None:
    cloud.kill_emulator()
    cloud.start_emulator()


OUTAGES: dict[str, Callable[[LocalCloud], None]] = {"restarted": LocalCloud.restart_emulator, "killed": kill_and_start}


@pytest.fixture(scope="module")
def frail(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCloud]:
    """A cloud of this module that saves its state."""
    with LocalCloud(
        tmp_path_factory.mktemp("frail"), keep_state=True, environment={"START_GRACE_SECONDS": 1}
    ) as running:
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


def has_second_execution(session: ChatSession) -> bool:
    """Return whether the sweep has moved the turn to its next execution."""
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


def test_turns_go_on_at_once_when_everything_is_started_again(tmp_path: Path) -> None:
    """No sweep is due meanwhile but the first one, and both turns have just begun."""
    with LocalCloud(tmp_path, keep_state=True, minute_seconds=3600) as cloud:
        assert cloud.model is not None
        resources, model = cloud.resources(), DemoModelClient(cloud.model.url)
        paused, streaming = (ChatSession(cloud, resources, model, cloud.token) for _ in range(2))
        paused.start_turn(tool_call_step(INSERT_CALL)).wait_for_event("toolRequest")
        streaming.start_turn(unfinished_text_step(LONG)).wait_for_text(20)
        cloud.kill()
        for opened in (paused, streaming, model):
            opened.close()
    with (
        LocalCloud(tmp_path, keep_state=True, minute_seconds=3600) as cloud,
        FermataClient(cloud.url, cloud.token) as client,
    ):
        for session in (paused, streaming):
            outcome = follow_turn(client, session.bridge, executor=lambda _: OK_RESULT)
            assert outcome.status == "done"
            assert LONG[:20] not in outcome.view.text
            names = [execution["name"] for execution in cloud.wait_for_executions(session.bridge)]
            assert sorted(names) == [f"{session.bridge}-1", f"{session.bridge}-2"]


def test_every_ledger_row_is_counted_once_across_two_kills_of_everything(tmp_path: Path) -> None:
    """The last turn of each service is killed with before its ledger row is delivered, which takes a second."""
    prompt_tokens = 0
    for number in range(3):
        with LocalCloud(tmp_path, keep_state=True) as cloud, FermataClient(cloud.url, cloud.token) as client:
            for _ in range(2):
                prompt_tokens += (run_turn(client, "data", "Hello").view.usage or {})["promptTokens"]
            if number < 2:
                cloud.kill()
                continue
            wait_until(partial(is_ledger_counted, cloud.resources()), "ledger and rollups agree")
            assert client.get_audit()["totals"]["promptTokens"] == prompt_tokens > 0


def is_ledger_counted(resources: LocalResources) -> bool:
    """Return whether ledger and rollups agree. Log lines are not compared: a kill loses the last ones."""
    differences = reconcile_usage(resources, TENANT, None, "UTC", [])
    return all(difference.endswith("no line in the logs.") for difference in differences)
