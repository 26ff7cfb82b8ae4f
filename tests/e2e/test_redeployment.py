"""Functions and workflow are deployed anew while turns run and wait: all of them finish."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from fermata_client import follow_turn
from local.cloud import LocalCloud
from tests.e2e import checks
from tests.e2e.conftest import SHORT
from tests.e2e.model import calls, slowly
from tests.e2e.talk import INSERT, Talk


def test_one_turn_streams_and_another_is_paused_while_everything_is_deployed_anew(
    new_talk: Callable[..., Talk], cloud: LocalCloud
) -> None:
    streaming, paused = new_talk(), new_talk()
    words = " ".join(f"word{number}" for number in range(60))
    flowing = streaming.start(slowly(words, seconds=5))
    waiting = paused.start(calls(INSERT), slowly(words, seconds=1))
    request = waiting.wait("toolRequest")
    flowing.wait("text")
    with ThreadPoolExecutor(2) as pool:
        followed = [pool.submit(follow_turn, talk.client, talk.bridge) for talk in (streaming, paused)]
        cloud.redeploy(HeartbeatSeconds=20, FlushMs=40)
        assert streaming.client.bridge(streaming.bridge)["status"] == "running", (
            "the deployment was slower than the turn"
        )
        paused.answer(request)
        views = [one.result(40).view for one in followed]
    assert [view.status for view in views] == ["done", "done"]
    assert views[0].text == words
    assert len(streaming.requests()) == 1
    assert [checks.sound(streaming), checks.sound(paused)] == views
    cloud.redeploy(FlushMs=30, **SHORT)
