"""The site's breakpoints, exactly as the editor posted them."""

from typing import Any

from fermata.tools.site.snapshot import Lenient, part_of


class AsPosted(Lenient):
    breakpoints: tuple[dict[str, Any], ...] = ()


class Widths(Lenient):
    """What `list_breakpoints` needs."""

    site: AsPosted
    active_breakpoint_id: str = ""


def list_breakpoints(snapshot: Any) -> dict[str, Any]:
    widths = part_of(snapshot, Widths)
    return {"activeBreakpointId": widths.active_breakpoint_id, "breakpoints": list(widths.site.breakpoints)}
