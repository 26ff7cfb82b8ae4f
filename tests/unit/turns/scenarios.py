"""Put turns into the situations that many tests start from."""

from collections.abc import Callable
from typing import Any

from fermata.tools.tool import Access, Execution, NoInput, Tool, ToolContext
from tests.unit.turns.stage import Stage, reply_with_calls, tool_call_block
from tests.unit.turns.state_machine import StateMachine

LARGE_TEXT = "x" * 300_000


def run_until_waiting(stage: Stage, *names: str, **prompt: Any) -> StateMachine:
    """Run a turn whose model calls these tools, until it waits for the first result of a browser tool."""
    stage.start_turn(**prompt)
    stage.script_replies(
        reply_with_calls(
            *(tool_call_block(name, **({"nodeId": "n"} if name == "deleteNode" else {})) for name in names)
        )
    )
    machine = StateMachine(stage)
    machine.run()
    return machine


def make_patient_tool(name: str = "ask_the_baker", seconds: float = 86400) -> Tool:
    """Return a browser tool that may take a day, so that the turn waits in the state Hold."""
    return Tool(
        name=name,
        toolset="site",
        description="Asks a person.",
        execution=Execution.BROWSER,
        access=Access.READ,
        timeout_seconds=seconds,
    )


def make_server_tool(name: str, act: Callable[[], object], *, idempotent: bool = False, **fields: Any) -> Tool:
    def run(_input: NoInput, _context: ToolContext) -> object:
        return act()

    return Tool(
        name=name,
        toolset="site",
        description="Does something on our side.",
        execution=Execution.SERVER,
        access=Access.READ,
        handler=run,
        idempotent=idempotent,
        **fields,
    )
