"""How the result looks."""

from fermata.tools.site.definitions.shared_inputs import NonEmptyText
from fermata.tools.site.factories import EVERYONE, browser_read
from fermata.tools.tool import ToolInput


class RenderSnapshotInput(ToolInput):
    breakpoint_id: NonEmptyText | None = None
    node_id: NonEmptyText | None = None


RENDERING_TOOLS = (
    browser_read(
        "render_snapshot",
        "Reports how the document on the canvas comes out at a breakpoint, by default the active one: the box of each "
        "node, what overflows, broken images, what cannot be seen, and a picture for models that see. `nodeId` limits "
        "it to one part.",
        RenderSnapshotInput,
        EVERYONE,
        heavy=True,
        vision_flag="captureScreenshot",
    ),
)
