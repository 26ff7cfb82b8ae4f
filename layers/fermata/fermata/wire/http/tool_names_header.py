"""What tools are called towards one client. The request says it, or else its tenant's setting (docs/decisions/0103)."""

from typing import get_args

from fermata.domain.dialect import ToolNameVariant
from fermata.domain.errors import InvalidRequest
from fermata.wire.http.dispatch import RequestContext

TOOL_NAMES_HEADER = "Fermata-Tool-Names"


def select_tool_names(visit: RequestContext) -> ToolNameVariant:
    said = visit.request.headers.get(TOOL_NAMES_HEADER.lower(), "").strip().lower()
    if not said:
        return visit.tenant.tool_names
    names: tuple[ToolNameVariant, ...] = get_args(ToolNameVariant)
    for known in names:
        if said == known:
            return known
    raise InvalidRequest(f"The header {TOOL_NAMES_HEADER} says what tools are called: {' or '.join(names)}.")
