"""Assemble the toolset of the content workspace, in the order in which its editor lists the tools."""

from fermata.domain.dialect import NEWEST_GENERATION
from fermata.tools.content.browser_tools import CONTENT_BROWSER_TOOLS, CREATE_DRAFT
from fermata.tools.content.server_tools import CONTENT_SERVER_TOOLS
from fermata.tools.toolset import Toolset

CONTENT_TOOLSET = Toolset(
    "content", (*CONTENT_SERVER_TOOLS, *CONTENT_BROWSER_TOOLS), {NEWEST_GENERATION: (CREATE_DRAFT,)}
)
