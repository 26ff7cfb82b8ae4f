"""Deploy functions and workflow again while turns run and wait. All of them finish."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from fermata_client import follow_turn
from local.cloud import LocalCloud
from tests.e2e import turn_checks
from tests.e2e.chat_session import INSERT_CALL, OK_RESULT, ChatSession
from tests.e2e.demo_model_client import slow_text_step, text_step, tool_call_step
from tests.e2e.fault_rules import FaultRules
from tests.e2e.stream_reader import Event
from tests.waiting import BACKSTOP_SECONDS

WORDS = " ".join(f"word{number}" for number in range(60))


def test_a_streaming_and_a_paused_turn_survive_a_deployment(
    new_session: Callable[..., ChatSession], cloud: LocalCloud, faults: FaultRules
) -> None:
    """The streaming turn stands still in mid-text during the deployment."""
    streaming, paused = new_session(), new_session()
    paused.start_turn(tool_call_step(INSERT_CALL), text_step("Here I am again.")).wait_for_event("toolRequest")
    deployed = threading.Event()

    def answer(_: Event) -> dict[str, Any]:
        assert deployed.wait(BACKSTOP_SECONDS)
        return OK_RESULT

    with ThreadPoolExecutor(2) as pool, faults.hold_call("dynamodb.PutItem", contains="word30") as gate:
        streaming.start_turn(slow_text_step(WORDS, seconds=1)).wait_for_event("text")
        followed = [
            pool.submit(follow_turn, session.client, session.bridge, executor=answer) for session in (streaming, paused)
        ]
        gate.wait_reached()
        cloud.redeploy(parameters={"HeartbeatSeconds": 241, "FlushMs": 31})
        gate.open()
        deployed.set()
        views = [one.result(BACKSTOP_SECONDS).view for one in followed]
    assert [view.text for view in views] == [WORDS, "Here I am again."]
    assert len(streaming.model_requests()) == 1
    assert [turn_checks.check_turn(streaming), turn_checks.check_turn(paused)] == views
