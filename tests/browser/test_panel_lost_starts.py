"""A prompt whose answers are lost until the panel gives up, and that is then sent once more."""

from collections.abc import Callable

from playwright.sync_api import Page, Route

from local.cloud import LocalCloud
from tests.browser.chromium import Chromium
from tests.browser.panel_page import COMPOSER, PanelPage
from tests.e2e.demo_model_client import text_step, tool_call_step

ADD = ("applyCss", {"css": ".new { color: red }"})


def test_a_prompt_that_is_sent_again_after_its_answers_were_lost_is_asked_once(
    browser: Chromium, page: Page, cloud: LocalCloud, new_prompt: Callable[..., str]
) -> None:
    panel = PanelPage(page, cloud)
    keys: list[str] = []

    def lose_answer(route: Route) -> None:
        if route.request.method == "POST":
            keys.append(route.request.headers["idempotency-key"])
        route.abort()

    page.route("**/chat/site", lose_answer)
    panel.ask(new_prompt(tool_call_step(ADD, text="I add it."), text_step("It is there.")))
    panel.wait_for_text("No service answers")
    assert len(set(keys)) == 1
    page.unroute("**/chat/site")
    with page.expect_request(lambda request: request.url.endswith("/chat/site")) as sent:
        page.press(COMPOSER, "Enter")
    assert sent.value.headers["idempotency-key"] == keys[0]
    panel.wait_for_text("It is there.")
    panel.wait_for_end()
    assert page.locator("fermata-panel .user").count() == 1
    assert page.frame_locator("#page").locator("style").inner_html().count(".new") == 1
