"""Assemble the tools of the CMS (decisions 0410 and 0451)."""

from fermata.tools.cms.collection_definitions import CMS_ENTRY_TOOLS, CMS_POST_TOOLS
from fermata.tools.cms.image_definitions import CMS_IMAGE_TOOLS, CMS_SEARCH_TOOLS
from fermata.tools.cms.page_definitions import CMS_PAGE_TOOLS, CMS_SECTION_TOOLS
from fermata.tools.cms.site_definitions import CMS_NAVIGATION_TOOLS, CMS_PLANNING_TOOLS, CMS_SETTING_TOOLS
from fermata.tools.toolset import Toolset

CMS_TOOLSET = Toolset(
    "cms",
    (
        *CMS_PAGE_TOOLS,
        *CMS_SECTION_TOOLS,
        *CMS_POST_TOOLS,
        *CMS_ENTRY_TOOLS,
        *CMS_NAVIGATION_TOOLS,
        *CMS_SETTING_TOOLS,
        *CMS_SEARCH_TOOLS,
        *CMS_IMAGE_TOOLS,
        *CMS_PLANNING_TOOLS,
    ),
)
