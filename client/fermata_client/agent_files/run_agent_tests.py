"""Ask pushed agents the prompts that their files test them with."""

from collections.abc import Sequence
from typing import Any

from fermata_client.service.client import FermataClient
from fermata_client.service.errors import FermataClientError
from fermata_client.service.json_types import JsonObject
from fermata_client.turns.runner import run_turn


def run_agent_tests(client: FermataClient, tests: Sequence[JsonObject]) -> list[JsonObject]:
    """Run each test in a conversation of its own. Return what each agent did, and what it should have done.

    Args:
        client: Of the service.
        tests: Each with `agentId`, `prompt`, and what is expected.
    """
    return [_run_test(client, test) for test in tests]


def _run_test(client: FermataClient, test: JsonObject) -> JsonObject:
    name = test.get("name") or f"{test['agentId']}: {test['prompt']}"
    try:
        outcome = run_turn(client, f"agent:{test['agentId']}", str(test["prompt"]))
    except FermataClientError as error:
        return {"name": name, "ok": False, "problems": [str(error)], "answer": "", "tools": []}
    answer, tools = outcome.view.text, [call.name for call in outcome.view.tool_calls]
    problems = [] if outcome.status == "done" else [f"The turn ended as {outcome.status}: {outcome.error or ''}"]
    expected: dict[str, Any] = test.get("expect") or {}
    if not problems:
        missing = [one for one in expected.get("contains", ()) if one not in answer]
        problems += [f"The answer does not contain {one!r}." for one in missing]
        problems += [f"The tool {one!r} was not called." for one in expected.get("tools", ()) if one not in tools]
    return {"name": name, "ok": not problems, "problems": problems, "answer": answer, "tools": tools}
