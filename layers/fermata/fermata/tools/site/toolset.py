"""The site's toolset: 6 tools that are answered here, then 29 the editor carries out, in the order it knows them."""

from fermata.tools.site.definitions.code_assets import CODE_ASSET_TOOLS
from fermata.tools.site.definitions.design_tokens import DESIGN_TOKEN_TOOLS
from fermata.tools.site.definitions.nodes import NODE_TOOLS
from fermata.tools.site.definitions.pages import PAGE_TOOLS
from fermata.tools.site.definitions.rendering import RENDERING_TOOLS
from fermata.tools.site.definitions.server_reads import SERVER_READ_TOOLS
from fermata.tools.site.definitions.styles import STYLE_TOOLS
from fermata.tools.site.factories import TOOLSET_NAME
from fermata.tools.toolset import Toolset

SITE_TOOLSET = Toolset(
    TOOLSET_NAME,
    (
        *SERVER_READ_TOOLS,
        *NODE_TOOLS,
        *STYLE_TOOLS,
        *CODE_ASSET_TOOLS,
        *PAGE_TOOLS,
        *DESIGN_TOKEN_TOOLS,
        *RENDERING_TOOLS,
    ),
)
