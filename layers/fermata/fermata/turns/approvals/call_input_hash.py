"""Hash the input of a call, to which a decision about it is bound."""

from typing import Any

from fermata.turns.pause import hash_result


def hash_call_input(tool_name: str, arguments: Any) -> str:
    """Return the hash of a call's validated input, to which a decision is bound.

    Args:
        tool_name: The canonical name of the tool.
        arguments: The input without what the service itself adds to it.
    """
    return hash_result([tool_name, arguments])
