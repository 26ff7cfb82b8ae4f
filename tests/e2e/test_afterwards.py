"""What is asked of the whole session, so it comes last: of its log lines, and of every execution it started."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from local.cloud import LocalCloud
from tests.e2e import canaries, turn_checks
from tests.e2e.conversation_driver import DOCUMENTS_CALL, ConversationDriver, make_snapshot
from tests.e2e.demo_model_client import text_step, tool_call_step
from tests.e2e.deployment import function_folders

USED = {"stream", "tool_result", "api", "credentials", "round", "recover"}
STATE_LIMIT = 2000


@pytest.fixture(scope="module")
def histories(cloud: LocalCloud) -> dict[str, list[dict[str, Any]]]:
    return {arn: turn_checks.get_history(cloud, arn) for arn in executions(cloud)}


def executions(cloud: LocalCloud) -> Iterator[str]:
    pages = cloud.get_client("stepfunctions").get_paginator("list_executions")
    for page in pages.paginate(stateMachineArn=cloud.get_output("TurnMachineArn")):
        yield from (execution["executionArn"] for execution in page["executions"])


def test_no_state_of_any_execution_was_larger_than_2_kb(histories: dict[str, list[dict[str, Any]]]) -> None:
    assert histories
    for events in histories.values():
        assert max(len(text) for event in events for text in carried(event)) < STATE_LIMIT


def test_no_execution_carried_anything_but_ids(histories: dict[str, list[dict[str, Any]]]) -> None:
    told = json.dumps(list(histories.values()), default=str)
    assert [canary for canary in canaries.ALL_CANARIES if canary in told] == []


def carried(event: dict[str, Any]) -> Iterator[str]:
    """Inputs and outputs of one event of a history."""
    yield ""
    for details in event.values():
        if isinstance(details, dict):
            yield from (str(details[name]) for name in ("input", "output") if name in details)


def test_no_log_line_of_any_function_holds_a_prompt_a_result_a_key_or_a_token(
    cloud: LocalCloud, talk: ConversationDriver
) -> None:
    last = tool_call_step(
        ("insertHtml", {"html": canaries.PAGE}), DOCUMENTS_CALL, text=canaries.ANSWER, thinking=canaries.ANSWER
    )
    talk.start_turn(last, text_step("", status=500, retryAfter=99), snapshot=make_snapshot("Home")).wait_for_end()
    cloud.run_recovery_sweep()
    lines = {name: cloud.read_log_lines(name) for name in function_folders()}
    lines["emulator"] = (cloud.directory / "emulator.log").read_text(errors="replace").splitlines()
    assert {name for name in USED if lines[name]} == USED, "there is something to look through"
    signature = cloud.token.rpartition(".")[2]
    secrets = (*canaries.ALL_CANARIES, signature, "AQC")
    secrets += tuple((cloud.directory / name).read_text() for name in ("secret", "host_secret"))
    leaks = [(name, line) for name, found in lines.items() for line in found if any(word in line for word in secrets)]
    assert leaks == []
