"""Ask pushed agents the prompts that their files test them with."""

from collections.abc import Sequence
from typing import Any

from fermata_client.service.client import FermataClient
from fermata_client.service.errors import FermataClientError
from fermata_client.service.json_types import Event, JsonObject
from fermata_client.turns.runner import run_turn


def run_agent_tests(client: FermataClient, tests: Sequence[JsonObject]) -> list[JsonObject]:
    """Run each test in a conversation of its own. Return what each agent did, and what it should have done.

    Args:
        client: Of the service.
        tests: Each with `agentId`, `prompt`, and what is expected.
    """
    return [_run_test(client, test) for test in tests]


def _run_test(client: FermataClient, test: JsonObject) -> JsonObject:
    texts: list[str] = []
    tools: list[str] = []
    problems: list[str] = []

    def record(event: Event) -> None:
        match event.get("type"):
            case "text":
                texts.append(str(event.get("text", "")))
            case "toolCall":
                tools.append(str(event.get("toolName", "")))
            case "error":
                problems.append(f"The turn failed: {event.get('message', event.get('error', ''))}")

    try:
        run_turn(client, f"agent:{test['agentId']}", str(test["prompt"]), on_event=record)
    except FermataClientError as error:
        problems.append(str(error))
    answer = "".join(texts)
    expected: dict[str, Any] = test.get("expect") or {}
    if not problems:
        missing = [one for one in expected.get("contains", ()) if one not in answer]
        problems += [f"The answer does not contain {one!r}." for one in missing]
        problems += [f"The tool {one!r} was not called." for one in expected.get("tools", ()) if one not in tools]
    name = test.get("name") or f"{test['agentId']}: {test['prompt']}"
    return {"name": name, "ok": not problems, "problems": problems, "answer": answer, "tools": tools}
