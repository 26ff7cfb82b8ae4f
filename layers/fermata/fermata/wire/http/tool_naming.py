"""Select the tool names that a client knows, by request header or tenant setting (decision 0103)."""

from typing import get_args

from fermata.domain.dialect import ToolNameVariant
from fermata.domain.errors import InvalidRequest
from fermata.wire.http.routing import RequestContext

TOOL_NAMES_HEADER = "Fermata-Tool-Names"


def select_tool_names(context: RequestContext) -> ToolNameVariant:
    """Return the variant that the request's header names, else the tenant's.

    Raises:
        InvalidRequest: The header names no variant.
    """
    requested = context.request.headers.get(TOOL_NAMES_HEADER.lower(), "").strip().lower()
    if not requested:
        return context.tenant.tool_names
    variants: tuple[ToolNameVariant, ...] = get_args(ToolNameVariant)
    for variant in variants:
        if requested == variant:
            return variant
    raise InvalidRequest(f"The header {TOOL_NAMES_HEADER} says what tools are called: {' or '.join(variants)}.")
