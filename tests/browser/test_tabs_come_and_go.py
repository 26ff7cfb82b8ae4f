"""Tabs that are closed and loaded again at any moment do each edit once, or say that they cannot know its outcome."""

import random

import pytest
from playwright.sync_api import Page

from local.cloud import LocalCloud
from tests.browser.chromium import Chromium
from tests.browser.own_editor_page import list_events, open_client
from tests.e2e.demo_model_client import DemoModelClient, script_marker, text_step, tool_call_step

INTERRUPTIONS = 4
ADD_EXECUTOR = """
() => { window.counting = {
  execute: async ({effectKey}) => {
    const key = `done ${effectKey}`;
    localStorage.setItem(key, Number(localStorage.getItem(key) ?? 0) + 1);
    await new Promise(next => setTimeout(next, Math.random() * 120));
    return {ok: true, data: {nodeIds: []}};
  },
}; }
"""
START = """
async prompt => {
  window.turn = await fermata.start({scope: "site", prompt, executor: counting});
  return turn.id;
}
"""
FOLLOW = """
id => {
  window.turn = fermata.follow(id, {scope: "site", executor: counting});
  read(turn);
}
"""
COUNTS = """
id => Object.entries(localStorage).filter(([key]) => key.startsWith(`done ${id}`)).map(([, count]) => Number(count))
"""


def insertions(*words: str) -> list[tuple[str, dict[str, str]]]:
    return [("insertHtml", {"parentId": "root", "html": f"<p>{word}</p>"}) for word in words]


@pytest.fixture
def prompt(cloud: LocalCloud) -> str:
    """A prompt that leads to six edits in two rounds."""
    assert cloud.model is not None
    model = DemoModelClient(cloud.model.url)
    steps = [tool_call_step(*insertions(*"abc")), tool_call_step(*insertions(*"def")), text_step("All are there.")]
    key = model.add_script(*steps)
    model.close()
    return f"Please. {script_marker(key)}"


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_tabs_that_come_and_go_do_nothing_twice(
    browser: Chromium, page: Page, cloud: LocalCloud, prompt: str, seed: int
) -> None:
    choices = random.Random(seed)
    context = page.context
    tabs = [open_tab(page, cloud), open_tab(context.new_page(), cloud)]
    bridge_id: str = tabs[0].evaluate(START, prompt)
    tabs[1].evaluate(FOLLOW, bridge_id)
    for _ in range(INTERRUPTIONS):
        tabs[0].wait_for_timeout(choices.randrange(20, 160))
        index = choices.randrange(2)
        if choices.random() < 0.5:
            tabs[index].close()
            tabs[index] = context.new_page()
        open_tab(tabs[index], cloud).evaluate(FOLLOW, bridge_id)
    assert [tab.evaluate("async () => (await turn.result).type") for tab in tabs] == ["done", "done"]
    assert set(tabs[0].evaluate(COUNTS, bridge_id)) == {1}
    follower = open_tab(tabs[0], cloud)
    follower.evaluate(FOLLOW, bridge_id)
    follower.evaluate("async () => (await turn.result).type")
    results = [event for event in list_events(follower) if event["type"] == "toolResult"]
    assert len(results) == 6
    assert all(result["ok"] or "outcome is unknown" in result["error"] for result in results)


def open_tab(tab: Page, cloud: LocalCloud) -> Page:
    open_client(tab, cloud)
    tab.evaluate(ADD_EXECUTOR)
    return tab
