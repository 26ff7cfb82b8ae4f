"""Functions and workflow are deployed anew while turns run and wait: all of them finish."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from fermata_client import follow_turn
from local.cloud import LocalCloud
from tests.e2e import checks
from tests.e2e.faults import Faults
from tests.e2e.model import calls, says, slowly
from tests.e2e.reader import Event
from tests.e2e.talk import INSERT, OK, Talk

WORDS = " ".join(f"word{number}" for number in range(60))


def test_one_turn_streams_and_another_is_paused_while_everything_is_deployed_anew(
    new_talk: Callable[..., Talk], cloud: LocalCloud, faults: Faults
) -> None:
    """The one that streams stands still in mid-text until everything is new."""
    streaming, paused = new_talk(), new_talk()
    paused.start(calls(INSERT), says("Here I am again.")).wait("toolRequest")
    deployed = threading.Event()

    def answer(_: Event) -> dict[str, Any]:
        assert deployed.wait(200)
        return OK

    with ThreadPoolExecutor(2) as pool, faults.gate("dynamodb.PutItem", contains="word30") as gate:
        streaming.start(slowly(WORDS, seconds=1)).wait("text")
        followed = [pool.submit(follow_turn, talk.client, talk.bridge, executor=answer) for talk in (streaming, paused)]
        gate.reached()
        cloud.redeploy(HeartbeatSeconds=241, FlushMs=31)
        gate.open()
        deployed.set()
        views = [one.result(240).view for one in followed]
    assert [view.text for view in views] == [WORDS, "Here I am again."]
    assert len(streaming.requests()) == 1
    assert [checks.sound(streaming), checks.sound(paused)] == views
