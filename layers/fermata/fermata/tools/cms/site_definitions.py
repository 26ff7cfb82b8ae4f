"""Define the tools for the navigation and the settings of a site, and the one that plans a task."""

from fermata.tools.cms import input_schemas, navigation_tools, setting_tools
from fermata.tools.cms.analyze_task import analyze_task
from fermata.tools.cms.tool_factory import make_cms_read, make_cms_write
from fermata.tools.tool import Access, Execution, JsonInput, Risk, Tool

CMS_NAVIGATION_TOOLS = (
    make_cms_read(
        "cms_getNavigation",
        "Lists the items of the site's navigation.",
        input_schemas.NO_INPUT_SCHEMA,
        navigation_tools.get_navigation,
    ),
    make_cms_write(
        "cms_addNavigationItem",
        "Adds an item to the navigation, which has 5 at most.",
        input_schemas.ADD_NAVIGATION_ITEM_SCHEMA,
        navigation_tools.add_navigation_item,
        risk=Risk.SAFE,
    ),
    make_cms_write(
        "cms_updateNavigationItem",
        "Changes label, link, place or visibility of an item of the navigation.",
        input_schemas.UPDATE_NAVIGATION_ITEM_SCHEMA,
        navigation_tools.update_navigation_item,
    ),
    make_cms_write(
        "cms_toggleNavigationItem",
        "Shows an item of the navigation that is hidden, or hides one that is shown.",
        input_schemas.TOGGLE_NAVIGATION_ITEM_SCHEMA,
        navigation_tools.toggle_navigation_item,
    ),
    make_cms_write(
        "cms_removeNavigationItem",
        "Removes an item of the navigation, once the user has confirmed it.",
        input_schemas.REMOVE_NAVIGATION_ITEM_SCHEMA,
        navigation_tools.remove_navigation_item,
        risk=Risk.HIGH,
        is_confirmed=True,
    ),
)
CMS_SETTING_TOOLS = (
    make_cms_read(
        "cms_getSiteSettings",
        "Returns all settings of the site, each by its key.",
        input_schemas.NO_INPUT_SCHEMA,
        setting_tools.get_site_settings,
    ),
    make_cms_read(
        "cms_getSiteSetting",
        "Returns the setting of the site that has this key.",
        input_schemas.GET_SITE_SETTING_SCHEMA,
        setting_tools.get_site_setting,
    ),
    make_cms_write(
        "cms_updateSiteSettings",
        "Sets settings of the site by their keys; null removes one.",
        input_schemas.UPDATE_SITE_SETTINGS_SCHEMA,
        setting_tools.update_site_settings,
    ),
)
CMS_PLANNING_TOOLS = (
    Tool(
        name="plan_analyzeTask",
        toolset="cms",
        description="Breaks a request of several parts into steps, each with the tools that fit.",
        execution=Execution.SERVER,
        access=Access.READ,
        input_model=JsonInput,
        declared_schema=input_schemas.ANALYZE_TASK_SCHEMA,
        handler=analyze_task,
        idempotent=True,
    ),
)
