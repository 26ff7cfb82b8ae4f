"""The site's toolset: 6 tools that are answered here, then 29 the editor carries out, in the order it knows them."""

from fermata.tools.site.code_assets import CODE_ASSETS
from fermata.tools.site.design import DESIGN
from fermata.tools.site.evidence import EVIDENCE
from fermata.tools.site.nodes import NODES
from fermata.tools.site.pages import PAGES
from fermata.tools.site.reads import READS
from fermata.tools.site.records import TOOLSET
from fermata.tools.site.styles import STYLES
from fermata.tools.toolset import Toolset

SITE = Toolset(TOOLSET, (*READS, *NODES, *STYLES, *CODE_ASSETS, *PAGES, *DESIGN, *EVIDENCE))
