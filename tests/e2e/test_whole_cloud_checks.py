"""Run turns full of canaries through every function, and check executions and logs.

The same checks run at the end of each session, for everything that its cloud has run (conftest.py).
"""

import pytest

from local.cloud import LocalCloud
from tests.e2e import canaries, whole_cloud_checks
from tests.e2e.chat_session import (
    DOCUMENTS_CALL,
    INSERT_CALL,
    ChatSession,
    make_snapshot,
    open_http,
)
from tests.e2e.demo_model_client import text_step, tool_call_step
from tests.waiting import wait_until

TASK_TOKEN = "AQC" + "1f" * 8 + "x_-Y" * 150
CHECKED_FUNCTIONS = ("stream_turns", "tool_result", "api", "credentials", "round", "recover")


def test_no_execution_and_no_log_line_holds_content_or_a_secret(cloud: LocalCloud, session: ChatSession) -> None:
    calls = tool_call_step(
        ("insertHtml", {"html": canaries.PAGE}), DOCUMENTS_CALL, text=canaries.ANSWER, thinking=canaries.ANSWER
    )
    session.start_turn(calls, text_step("", status=500, retryAfter=99), snapshot=make_snapshot("Home")).wait_for_end()
    reader = session.start_turn(tool_call_step(INSERT_CALL), text_step("Done."))
    session.answer_request(reader.wait_for_event("toolRequest"))
    reader.wait_for_end()
    with open_http(cloud) as http:
        assert http.get("/credentials").status_code == 200
    cloud.run_recovery_sweep()
    for folder in CHECKED_FUNCTIONS:
        wait_until(lambda folder=folder: cloud.read_log_lines(folder), f"{folder} has log lines")  # type: ignore[misc]
    whole_cloud_checks.check_executions(cloud)
    whole_cloud_checks.check_logs(cloud)


@pytest.mark.parametrize(
    ("line", "is_leak"),
    [
        (f'{{"message":"turn.continued","token":"{TASK_TOKEN}"}}', True),
        (f"Traceback: {TASK_TOKEN[:60]}…", True),
        ('{"message":"turn.continued","turn":"kAQCXh2W2ZjT_yQ-3mSfa"}', False),
        (f'{{"message":"{canaries.PAGE}"}}', True),
    ],
)
def test_a_task_token_is_told_from_an_id_that_looks_like_its_beginning(line: str, is_leak: bool) -> None:
    assert whole_cloud_checks.has_secret(line, canaries.ALL_CANARIES) is is_leak
