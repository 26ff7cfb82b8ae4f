"""Navigation has at most five items known by their labels; settings are set by key; a task becomes steps."""

from typing import Any

from tests.unit.tools.cms.conftest import CmsAgent


def list_labels(agent: CmsAgent) -> list[str]:
    return [item["label"] for item in agent.data("cms_getNavigation")["navigationItems"]]


def test_a_site_begins_with_four_items_and_takes_a_fifth(agent: CmsAgent) -> None:
    assert list_labels(agent) == ["Home", "Blog", "About", "Contact"]
    added = agent.data("cms_addNavigationItem", label="Pricing", href="/pages/pricing", location="header")
    assert (added["count"], added["navigationItems"][-1]["visible"]) == (5, True)
    sixth = agent.call("cms_addNavigationItem", label="Jobs", href="/pages/jobs", location="footer")
    assert sixth.data["errorCode"] == "VALIDATION_FAILED"


def test_a_label_names_one_item(agent: CmsAgent) -> None:
    taken = agent.call("cms_addNavigationItem", label=" about ", href="/x", location="header")
    assert taken.data["errorCode"] == "CONFLICT"
    assert agent.call("cms_updateNavigationItem", label="About", newLabel="Home").data["errorCode"] == "CONFLICT"
    agent.data("cms_updateNavigationItem", label="about", newLabel="About us", newLocation="footer")
    assert list_labels(agent) == ["Home", "Blog", "About us", "Contact"]
    missing = agent.call("cms_toggleNavigationItem", label="About")
    assert missing.data["errorCode"] == "NOT_FOUND"
    assert "About us" in str(missing.error)
    assert agent.call("cms_updateNavigationItem", label="Home").data["errorCode"] == "VALIDATION_FAILED"


def test_an_item_is_hidden_shown_and_removed_once_it_is_confirmed(agent: CmsAgent) -> None:
    for visible in (False, True):
        items = agent.data("cms_toggleNavigationItem", label="Blog")["navigationItems"]
        assert items[1]["visible"] is visible
    assert agent.data("cms_removeNavigationItem", label="Blog")["requiresConfirmation"] is True
    assert len(list_labels(agent)) == 4
    agent.data("cms_removeNavigationItem", label="Blog", confirmed=True)
    assert list_labels(agent) == ["Home", "About", "Contact"]


def test_deleting_a_page_removes_its_own_links_only(agent: CmsAgent) -> None:
    for name, href in (("About", "/pages/about-us?locale=en"),):
        agent.data("cms_updateNavigationItem", label=name, newHref=href)
    page = agent.data("cms_createPage", name="About", slug="about")["page"]
    asked = agent.data("cms_deletePage", id=page["id"])
    assert (asked["pageInNavigation"], asked["navigationLocations"]) == (False, [])
    agent.data("cms_addNavigationItem", label="Team", href="/pages/about#team", location="footer")
    assert agent.data("cms_deletePage", id=page["id"])["navigationLocations"] == ["footer"]
    for _ in range(2):
        deleted = agent.data(
            "cms_deletePage", id=page["id"], removeFromNavigation=True, confirmed=True, effect="turn-1/7/0"
        )
        assert deleted["success"] is True
    assert list_labels(agent) == ["Home", "Blog", "About", "Contact"]


def test_settings_are_set_and_removed_by_key(agent: CmsAgent) -> None:
    assert agent.data("cms_getSiteSettings")["settings"] == {}
    settings: dict[str, Any] = {"theme": "dark", "social": {"x": "@rye"}}
    assert agent.data("cms_updateSiteSettings", settings=settings)["changedKeys"] == ["social", "theme"]
    changed = agent.data("cms_updateSiteSettings", settings={"theme": None, "social": {"x": "@rye"}})
    assert (changed["settings"], changed["changedKeys"]) == ({"social": {"x": "@rye"}}, ["theme"])
    assert agent.data("cms_getSiteSetting", key="social")["value"] == {"x": "@rye"}
    assert agent.call("cms_getSiteSetting", key="theme").data["errorCode"] == "NOT_FOUND"
    refused = agent.call("cms_updateSiteSettings", settings={"navigation": []})
    assert refused.data["errorCode"] == "VALIDATION_FAILED"


def test_a_long_request_becomes_steps_with_tools(agent: CmsAgent) -> None:
    request = "Create a page about rye. Then publish the post rye and add a navigation item"
    plan = agent.data("plan_analyzeTask", userRequest=request)["plan"]
    assert [step["action"] for step in plan["steps"]] == [
        "Create a page about rye",
        "Then publish the post rye",
        "add a navigation item",
    ]
    assert "cms_createPage" in plan["steps"][0]["tools"]
    assert "cms_publishPost" in plan["steps"][1]["tools"]
    assert plan["steps"][2]["tools"][0] == "cms_addNavigationItem"
