"""The site's breakpoints, exactly as the editor posted them."""

from typing import Any

from fermata.tools.site.snapshot import LenientModel, read_snapshot_part


class RawBreakpoints(LenientModel):
    breakpoints: tuple[dict[str, Any], ...] = ()


class BreakpointsPart(LenientModel):
    """What `list_breakpoints` needs."""

    site: RawBreakpoints
    active_breakpoint_id: str = ""


def list_breakpoints(snapshot: Any) -> dict[str, Any]:
    widths = read_snapshot_part(snapshot, BreakpointsPart)
    return {"activeBreakpointId": widths.active_breakpoint_id, "breakpoints": list(widths.site.breakpoints)}
