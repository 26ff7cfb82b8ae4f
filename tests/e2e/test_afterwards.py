"""What is asked of the whole session, so it comes last: of its log lines, and of every execution it started."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from local.cloud import LocalCloud
from tests.e2e import canaries, checks
from tests.e2e.deployment import functions
from tests.e2e.model import calls, says
from tests.e2e.talk import DOCUMENTS, Talk, snapshot_of

USED = {"stream", "tool_result", "api", "credentials", "round", "recover"}
STATE_LIMIT = 2000


@pytest.fixture(scope="module")
def histories(cloud: LocalCloud) -> dict[str, list[dict[str, Any]]]:
    return {arn: checks.history(cloud, arn) for arn in executions(cloud)}


def executions(cloud: LocalCloud) -> Iterator[str]:
    pages = cloud.client("stepfunctions").get_paginator("list_executions")
    for page in pages.paginate(stateMachineArn=cloud.output("TurnMachineArn")):
        yield from (execution["executionArn"] for execution in page["executions"])


def test_no_state_of_any_execution_was_larger_than_2_kb(histories: dict[str, list[dict[str, Any]]]) -> None:
    assert histories
    for events in histories.values():
        assert max(len(text) for event in events for text in carried(event)) < STATE_LIMIT


def test_no_execution_carried_anything_but_ids(histories: dict[str, list[dict[str, Any]]]) -> None:
    told = json.dumps(list(histories.values()), default=str)
    assert [canary for canary in canaries.ALL if canary in told] == []


def carried(event: dict[str, Any]) -> Iterator[str]:
    """Inputs and outputs of one event of a history."""
    yield ""
    for details in event.values():
        if isinstance(details, dict):
            yield from (str(details[name]) for name in ("input", "output") if name in details)


def test_no_log_line_of_any_function_holds_a_prompt_a_result_a_key_or_a_token(cloud: LocalCloud, talk: Talk) -> None:
    last = calls(("insertHtml", {"html": canaries.PAGE}), DOCUMENTS, text=canaries.ANSWER, thinking=canaries.ANSWER)
    talk.start(last, says("", status=500, retryAfter=99), snapshot=snapshot_of("Home")).finish()
    cloud.recover()
    lines = {name: cloud.log_lines(name) for name in functions()}
    lines["emulator"] = (cloud.directory / "emulator.log").read_text(errors="replace").splitlines()
    assert {name for name in USED if lines[name]} == USED, "there is something to look through"
    signature = cloud.token.rpartition(".")[2]
    secrets = (*canaries.ALL, signature, "AQC")
    secrets += tuple((cloud.directory / name).read_text() for name in ("secret", "host_secret"))
    leaks = [(name, line) for name, found in lines.items() for line in found if any(word in line for word in secrets)]
    assert leaks == []
