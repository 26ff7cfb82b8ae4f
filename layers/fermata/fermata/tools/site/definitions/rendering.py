"""Define the tool that renders the document on the canvas."""

from fermata.tools.input_types import NonEmptyText
from fermata.tools.site.tool_factory import SITE_TOOL_FACTORY
from fermata.tools.tool import ResultPolicy, ToolInput
from fermata.tools.tool_factory import EVERYONE


class RenderSnapshotInput(ToolInput):
    breakpoint_id: NonEmptyText | None = None
    node_id: NonEmptyText | None = None


RENDERING_TOOLS = (
    SITE_TOOL_FACTORY.browser_read(
        name="render_snapshot",
        description="Reports how the document on the canvas looks at a breakpoint, by default the active one. It gives "
        "the box of each node, what overflows, broken images and what cannot be seen. Models that see get a picture "
        "too. `nodeId` limits it to one part.",
        input_model=RenderSnapshotInput,
        permissions=EVERYONE,
        result_policy=ResultPolicy(heavy=True),
        vision_flag="captureScreenshot",
    ),
)
