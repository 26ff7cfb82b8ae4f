"""Situations that many tests begin with."""

from collections.abc import Callable
from typing import Any

from fermata.tools.tool import Access, Execution, NoInput, Tool, ToolContext
from tests.unit.turns.stage import Stage, reply_with_calls, tool_call_block
from tests.unit.turns.state_machine import StateMachine

LARGE_TEXT = "x" * 300_000


def run_until_waiting(stage: Stage, *names: str, **prompt: Any) -> StateMachine:
    """A turn whose model called these, and which waits for the first that is somebody else's."""
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
    """A browser tool that may take a day: it is waited for in Hold."""
    return Tool(
        name=name,
        toolset="site",
        description="Asks a person.",
        execution=Execution.BROWSER,
        capability=Access.READ,
        timeout_seconds=seconds,
    )


def make_server_tool(name: str, act: Callable[[], object], *, idempotent: bool = False, **more: Any) -> Tool:
    def run(_given: NoInput, _context: ToolContext) -> object:
        return act()

    return Tool(
        name=name,
        toolset="site",
        description="Does something on our side.",
        execution=Execution.SERVER,
        capability=Access.READ,
        handler=run,
        idempotent=idempotent,
        **more,
    )
