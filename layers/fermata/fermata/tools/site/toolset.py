"""Assemble the toolset of the site editor: server tools first, then browser tools in the order of the editor."""

from fermata.domain.dialect import NEWEST_GENERATION
from fermata.tools.site.definitions.code_assets import CODE_ASSET_TOOLS, WRITE_CODE_ASSET_WITH_DEPENDENCIES
from fermata.tools.site.definitions.design_tokens import DESIGN_TOKEN_TOOLS
from fermata.tools.site.definitions.nodes import NODE_TOOLS
from fermata.tools.site.definitions.pages import PAGE_TOOLS
from fermata.tools.site.definitions.rendering import RENDERING_TOOLS
from fermata.tools.site.definitions.server_reads import SERVER_READ_TOOLS
from fermata.tools.site.definitions.styles import APPLY_CSS_WITH_OPERATIONS, STYLE_TOOLS
from fermata.tools.toolset import Toolset

SITE_TOOLSET = Toolset(
    "site",
    (
        *SERVER_READ_TOOLS,
        *NODE_TOOLS,
        *STYLE_TOOLS,
        *CODE_ASSET_TOOLS,
        *PAGE_TOOLS,
        *DESIGN_TOKEN_TOOLS,
        *RENDERING_TOOLS,
    ),
    {NEWEST_GENERATION: (APPLY_CSS_WITH_OPERATIONS, WRITE_CODE_ASSET_WITH_DEPENDENCIES)},
)
