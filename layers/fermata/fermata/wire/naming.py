"""What tools are called towards one client. The request says it, or else its tenant's setting (docs/decisions/0103)."""

from typing import get_args

from fermata.wire.edge import Visit
from fermata.words.dialect import ToolNames
from fermata.words.errors import Invalid

HEADER = "Fermata-Tool-Names"


def tool_names(visit: Visit) -> ToolNames:
    said = visit.request.headers.get(HEADER.lower(), "").strip().lower()
    if not said:
        return visit.tenant.tool_names
    names: tuple[ToolNames, ...] = get_args(ToolNames)
    for known in names:
        if said == known:
            return known
    raise Invalid(f"The header {HEADER} says what tools are called: {' or '.join(names)}.")
