"""The whole of AWS goes away under open turns and comes back: stopped cleanly, or killed as by a power cut."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from fermata_client import Patience
from local.cloud import LocalCloud
from tests.e2e import checks
from tests.e2e.model import Model, calls, says, slowly
from tests.e2e.talk import INSERT, OK, Talk
from tests.local.lab import until

pytestmark = pytest.mark.cloud
LONG = " ".join(f"word{number}" for number in range(100))


def killed(cloud: LocalCloud) -> None:
    written_down(cloud)
    cloud.kill_emulator()
    cloud.start_emulator()


OUTAGES: dict[str, Callable[[LocalCloud], None]] = {"restarted": LocalCloud.restart_emulator, "killed": killed}


@pytest.fixture(scope="module")
def frail(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCloud]:
    """A cloud of its own, which remembers what it knew."""
    with LocalCloud(tmp_path_factory.mktemp("frail"), keep_state=True, START_GRACE_SECONDS=1) as running:
        yield running


@pytest.fixture
def new_talk(frail: LocalCloud) -> Iterator[Callable[[], Talk]]:
    assert frail.model is not None
    model, desk, made = Model(frail.model.url), frail.desk(), list[Talk]()

    def make() -> Talk:
        made.append(Talk(frail, desk, model, frail.token))
        return made[-1]

    yield make
    for talk in made:
        talk.close()
    model.close()


def written_down(frail: LocalCloud) -> None:
    """Waits until everything so far is on disk: a power cut takes what came after the last time that was done."""
    tables = frail.directory / "state" / "dynamodb.json"
    for _ in range(2):  # the first time may have begun before the last change
        before = tables.stat().st_mtime_ns if tables.exists() else 0
        frail.recover()  # something happens, so there is something to write
        until(partial(is_newer, tables, before), "the state is written")


def is_newer(file: Path, seen: int) -> bool:
    return file.exists() and file.stat().st_mtime_ns > seen


def continued(talk: Talk) -> bool:
    """Whether the sweep has moved the turn to its next execution."""
    return talk.cloud.recover() >= 0 and f"{talk.bridge}-2" in checks.executions(talk.cloud, talk.bridge)


def ended(talk: Talk) -> bool:
    return bool(talk.client.bridge(talk.bridge)["status"] == "done")


@pytest.mark.parametrize("how", OUTAGES)
def test_open_turns_go_on_in_a_new_execution_when_everything_is_back(
    new_talk: Callable[[], Talk], frail: LocalCloud, how: str
) -> None:
    paused, streaming = new_talk(), new_talk()
    request = paused.start(calls(INSERT), says("Still here.")).wait("toolRequest")
    reader = streaming.start(slowly(LONG, seconds=60), says("One clean answer."))
    reader.wait_for_text(20)
    OUTAGES[how](frail)
    until(lambda: continued(paused) and continued(streaming), "the sweep moves both to their next execution")
    Patience().insist(lambda: paused.client.answer(paused.bridge, request["requestId"], OK))
    for talk, text in ((paused, "Still here."), (streaming, "One clean answer.")):
        until(partial(ended, talk), "the turn ends")
        assert list(checks.executions(frail, talk.bridge)) == [f"{talk.bridge}-1", f"{talk.bridge}-2"]
        assert checks.sound(talk).text == text
