"""Patch Step Functions: evaluate plain expressions without the JSONata engine.

Unpatched MiniStack parses each expression whenever a state is entered. Those of a turn's workflow are nearly all a path
such as `$states.context.Task.Token`, a path that may lead nowhere, the comparison of a path with a text, or a number.
A path that ends at a value of JSON gives that value in JSONata too. Everything else (lists on the way, what is missing,
comparisons of other types) is left to the engine.
"""

import re
from typing import Any

from ministack.services import stepfunctions

from local.emulator.patches.registry import Function, patch_function
from local.emulator.patches.task_tokens import Json

PATH = r"\$states((?:\.[A-Za-z_]\w*)+)"
PLAIN_EXPRESSION = re.compile(
    rf"\s*(?:{PATH}(?:\s*=\s*'([^'\\]*)')?"
    rf"|\$exists\({PATH}\)\s*\?\s*\$states\3\s*:\s*null"
    rf"|(0|[1-9]\d{{0,8}}))\s*"
)
"""A path, or its comparison with a text. A path that is null where it leads nowhere. A number."""
UNKNOWN = object()
"""What the engine has to find out."""


@patch_function(stepfunctions, "_evaluate_jsonata", "d970811e01da")
def evaluate_jsonata(
    original: Function,
    expression: str,
    raw_input: Any,
    ctx: Json | None = None,
    result: Any = None,
    error_output: Any = None,
) -> Any:
    states = {"input": raw_input, "result": result, "errorOutput": error_output, "context": ctx or {}}
    value = evaluate_plainly(expression, states)
    return original(expression, raw_input, ctx, result, error_output) if value is UNKNOWN else value


def evaluate_plainly(expression: str, states: Json) -> Any:
    """Return the value of an expression, or `UNKNOWN`."""
    plain = PLAIN_EXPRESSION.fullmatch(expression)
    if plain is None:
        return UNKNOWN
    path, text, optional_path, number = plain.groups()
    if number:
        return int(number)
    value = follow_path(states, (path or optional_path).split(".")[1:])
    if text is not None:
        return value == text if isinstance(value, str) else UNKNOWN
    return value if isinstance(value, str | int | float | dict) else UNKNOWN


def follow_path(value: Any, names: list[str]) -> Any:
    """Return the member at the end of a path through objects, or None."""
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value
