"""Patch Step Functions: read a plain path of `$states` without the JSONata engine.

Unpatched MiniStack parses each expression whenever a state is entered. The payload of a round's function has eight, of
which seven are paths such as `$states.context.Task.Token`. A path that ends at a value of JSON gives that value in
JSONata too. Everything else (lists on the way, null, what is missing) is left to the engine.
"""

import re
from typing import Any

from ministack.services import stepfunctions

from local.emulator.patches.registry import Function, patch_function
from local.emulator.patches.task_tokens import Json

PATH = re.compile(r"\s*\$states((?:\.[A-Za-z_]\w*)+)\s*")


@patch_function(stepfunctions, "_evaluate_jsonata", "d970811e01da")
def evaluate_jsonata(
    original: Function,
    expression: str,
    raw_input: Any,
    ctx: Json | None = None,
    result: Any = None,
    error_output: Any = None,
) -> Any:
    if path := PATH.fullmatch(expression):
        states = {"input": raw_input, "result": result, "errorOutput": error_output, "context": ctx or {}}
        value = follow_path(states, path[1].split(".")[1:])
        if isinstance(value, str | int | float | dict):
            return value
    return original(expression, raw_input, ctx, result, error_output)


def follow_path(value: Any, names: list[str]) -> Any:
    """Return the member at the end of a path through objects, or None."""
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value
