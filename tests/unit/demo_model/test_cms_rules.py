"""Let the demo model work on a site in the content store, with the real tools of the CMS."""

import json
from typing import Any

import pytest

from local.demo_model.model_answer import ModelAnswer
from local.demo_model.rules.cms_site import CMS_TOOLS
from local.demo_model.rules.next_answer import decide_answer
from tests.unit.tools.cms.conftest import CmsAgent, agent, clock, resources, shared_resources

__all__ = ["agent", "clock", "resources", "shared_resources"]
MAX_ROUNDS = 5
OFFERED = [{"name": name, "input_schema": {}} for name in CMS_TOOLS]


def ask(agent: CmsAgent, prompt: str) -> tuple[list[str], str]:
    """Run a turn, and return which tools were called and what was said last."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": [{"type": "text", "text": prompt}]}]
    called: list[str] = []
    for _ in range(MAX_ROUNDS):
        answer: ModelAnswer = decide_answer({"messages": messages, "tools": OFFERED})
        if not answer.tool_calls:
            return called, answer.text
        blocks = answer.content_blocks()
        messages.append({"role": "assistant", "content": blocks})
        results = [run_block(agent, block) for block in blocks if block["type"] == "tool_use"]
        messages.append({"role": "user", "content": results})
        called += [call.name for call in answer.tool_calls]
    raise AssertionError(f"It calls on and on: {called}")


def run_block(agent: CmsAgent, block: dict[str, Any]) -> dict[str, Any]:
    output = agent.call(block["name"], **block["input"])
    text = json.dumps(output.data) if output.ok else str(output.error)
    return {"type": "tool_result", "tool_use_id": block["id"], "content": text, "is_error": not output.ok}


@pytest.mark.parametrize(
    ("prompt", "name"),
    [
        ("Create a page “About us”", "About us"),
        ("add a page about opening hours.", "Opening hours"),
        ("Make a new page called Team with a hero section", "Team"),
    ],
)
def test_a_page_of_the_wanted_name_is_created(agent: CmsAgent, prompt: str, name: str) -> None:
    called, said = ask(agent, prompt)
    assert [page["name"] for page in agent.data("cms_getPages")["pages"]] == [name]
    assert called[-1].startswith("cms_createPage")
    assert "not an AI" in said


def test_a_page_is_created_with_the_section_that_it_is_to_have(agent: CmsAgent) -> None:
    called, _ = ask(agent, "Create a page “About us” with a hero section")
    (page,) = agent.data("cms_getPages")["pages"]
    sections = agent.data("cms_getPageSections", pageId=page["id"])["sections"]
    assert (called[0], [section["sectionKey"] for section in sections]) == ("cms_listSectionDefs", ["hero"])


def test_nothing_is_created_with_a_section_that_the_site_does_not_have(agent: CmsAgent) -> None:
    _, said = ask(agent, "Create a page “About us” with a pricing section")
    assert "no section called “pricing”" in said
    assert agent.data("cms_getPages")["total"] == 0


def test_what_is_refused_is_reported(agent: CmsAgent) -> None:
    ask(agent, "Create a page “About us”")
    _, said = ask(agent, "Create a page “About us”")
    assert "That did not work. cms_createPage:" in said


def test_posts_are_written_and_listed_and_pages_put_into_the_navigation(agent: CmsAgent) -> None:
    ask(agent, "Write a post “Open on Sundays”")
    assert "“Open on Sundays”" in ask(agent, "Which posts are there?")[1]
    ask(agent, "Add “About us” to the navigation")
    item = agent.data("cms_getNavigation")["navigationItems"][-1]
    assert (item["label"], item["href"]) == ("About us", "/pages/about-us")


def test_what_it_cannot_do_is_answered_with_what_it_can(agent: CmsAgent) -> None:
    called, said = ask(agent, "Sing a song")
    assert (called, "I can list what there is" in said) == ([], True)
