"""Define the tools for pages and their sections."""

from fermata.tools.cms import input_schemas, page_tools, section_tools
from fermata.tools.cms.tool_factory import make_cms_read, make_cms_write
from fermata.tools.tool import Risk

CMS_PAGE_TOOLS = (
    make_cms_read(
        "cms_getPages",
        "Lists the pages of the site with their ids, names and slugs. `cursor` continues a long list.",
        input_schemas.GET_PAGES_SCHEMA,
        page_tools.get_pages,
        "cms_listPages",
    ),
    make_cms_read(
        "cms_getPage",
        "Returns a page by id or slug, without the content of its sections unless it is asked for.",
        input_schemas.GET_PAGE_SCHEMA,
        page_tools.get_cms_page,
    ),
    make_cms_write(
        "cms_createPage",
        "Creates a page of this name. Without `slug`, it gets one that is made of its name.",
        input_schemas.CREATE_PAGE_SCHEMA,
        page_tools.create_cms_page,
        risk=Risk.SAFE,
    ),
    make_cms_write(
        "cms_createPageWithContent",
        "Creates a page with sections and their content, and says where in the navigation it belongs.",
        input_schemas.CREATE_PAGE_WITH_CONTENT_SCHEMA,
        page_tools.create_page_with_content,
        risk=Risk.SAFE,
    ),
    make_cms_write(
        "cms_updatePage",
        "Changes the name, slug or settings of a page.",
        input_schemas.UPDATE_PAGE_SCHEMA,
        page_tools.update_page,
    ),
    make_cms_write(
        "cms_deletePage",
        "Deletes a page with its sections, once the user has confirmed it.",
        input_schemas.DELETE_PAGE_SCHEMA,
        page_tools.delete_page,
        risk=Risk.HIGH,
        is_confirmed=True,
    ),
)
CMS_SECTION_TOOLS = (
    make_cms_read(
        "cms_getPageSections",
        "Lists the sections of a page, without their content unless it is asked for.",
        input_schemas.GET_PAGE_SECTIONS_SCHEMA,
        section_tools.get_page_sections,
    ),
    make_cms_read(
        "cms_getSectionContent",
        "Returns the content of one section in one language.",
        input_schemas.GET_SECTION_CONTENT_SCHEMA,
        section_tools.get_section_content,
    ),
    make_cms_read(
        "cms_getSectionDef",
        "Returns a section definition with the fields that its sections have.",
        input_schemas.GET_SECTION_DEF_SCHEMA,
        section_tools.get_section_def,
        "cms_getSectionFields",
    ),
    make_cms_read(
        "cms_listSectionDefs",
        "Lists the section definitions that pages can be made of.",
        input_schemas.NO_INPUT_SCHEMA,
        section_tools.list_section_defs,
        "cms_listSectionTemplates",
    ),
    make_cms_write(
        "cms_addPageSection",
        "Adds an empty section to a page: at its end, or at the place that `sortOrder` names.",
        input_schemas.ADD_PAGE_SECTION_SCHEMA,
        section_tools.add_section,
        "cms_addSectionToPage",
        risk=Risk.SAFE,
    ),
    make_cms_write(
        "cms_syncSectionContent",
        "Sets fields of a section in one language. Fields that are not named stay.",
        input_schemas.SYNC_SECTION_CONTENT_SCHEMA,
        section_tools.sync_section_content,
        "cms_syncPageContent",
        "cms_updateSectionContent",
    ),
    make_cms_write(
        "cms_deletePageSection",
        "Deletes a section of a page, once the user has confirmed it.",
        input_schemas.DELETE_PAGE_SECTION_SCHEMA,
        section_tools.delete_page_section,
        risk=Risk.HIGH,
        is_confirmed=True,
    ),
    make_cms_write(
        "cms_deletePageSections",
        "Deletes several sections of one page, all or none, once the user has confirmed it.",
        input_schemas.DELETE_PAGE_SECTIONS_SCHEMA,
        section_tools.delete_sections,
        risk=Risk.HIGH,
        is_confirmed=True,
    ),
)
