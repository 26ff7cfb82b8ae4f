"""List the breakpoints of the site, unchanged from the snapshot."""

from typing import Any

from fermata.tools.lenient_models import LenientModel
from fermata.tools.site.snapshot import read_snapshot_part


class RawBreakpoints(LenientModel):
    """Breakpoints with all members that the editor posted."""

    breakpoints: tuple[dict[str, Any], ...] = ()


class BreakpointsPart(LenientModel):
    """The part of the snapshot that `list_breakpoints` needs."""

    site: RawBreakpoints
    active_breakpoint_id: str = ""


def list_breakpoints(snapshot: Any) -> dict[str, Any]:
    part = read_snapshot_part(snapshot, BreakpointsPart)
    return {"activeBreakpointId": part.active_breakpoint_id, "breakpoints": list(part.site.breakpoints)}
