"""How the result looks."""

from fermata.tools.site.inputs import Text
from fermata.tools.site.records import EVERYONE, browser_read
from fermata.tools.tool import ToolInput


class RenderSnapshot(ToolInput):
    breakpoint_id: Text | None = None
    node_id: Text | None = None


EVIDENCE = (
    browser_read(
        "render_snapshot",
        "Reports how the document on the canvas comes out at a breakpoint, by default the active one: the box of each "
        "node, what overflows, broken images, what cannot be seen, and a picture for models that see. `nodeId` limits "
        "it to one part.",
        RenderSnapshot,
        EVERYONE,
        heavy=True,
        vision_flag="captureScreenshot",
    ),
)
