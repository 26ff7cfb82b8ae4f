"""How much of its conversation a turn's model is sent, and what of it."""

import json
from collections.abc import Sequence

from fermata.aws.desk import Desk
from fermata.conversations.recipient import BYTES_PER_TOKEN, Recipient
from fermata.credentials.abilities import abilities_of
from fermata.drivers.capabilities import most_pictures, usual_capabilities
from fermata.tools.names import Names
from fermata.tools.toolset import Toolset
from fermata.turns.turn import Turn
from fermata.words.tools import ToolSpec

SLACK = 0.1
"""Of the window, left free because tokens are estimated. In it a model thinks, unless it is told to think more."""
LEAST = 2_000


def recipient_of(desk: Desk, turn: Turn, toolset: Toolset, system: str, tools: Sequence[ToolSpec]) -> Recipient:
    known = abilities_of(desk, turn.provider, turn.model)
    # Ollama holds as much as the request asks it to, whatever the model could.
    window = desk.settings.ollama_window if turn.provider == "ollama" else known.window or desk.settings.unknown_window
    around = len(system) + len(turn.situation) + sum(map(_size, tools))
    free = max(int(window * SLACK), turn.thinking_tokens) + desk.settings.longest_answer

    def is_heavy(name: str) -> bool:
        tool = toolset.find(name)
        return tool is not None and tool.result.heavy

    def is_forgotten(name: str) -> bool:
        tool = toolset.find(name)
        return tool is not None and not tool.result.persist

    return Recipient(
        provider=turn.provider,
        model=turn.model,
        tokens=max(LEAST, window - free - around // BYTES_PER_TOKEN),
        sees=known.sees is not False,
        sees_results=known.sees is not False and usual_capabilities(turn.provider, turn.model).tool_result_images,
        most_pictures=most_pictures(turn.provider),
        is_heavy=is_heavy,
        is_forgotten=is_forgotten,
        called=toolset.naming(Names(turn.tool_names)),
    )


def _size(tool: ToolSpec) -> int:
    return len(tool.name) + len(tool.description) + len(json.dumps(tool.input_schema))
