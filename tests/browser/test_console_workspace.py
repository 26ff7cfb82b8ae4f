"""The pages of the workspace with errors, slow responses, thousands of rows, and while a turn runs."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from playwright.sync_api import Route, expect

from fermata_client import FermataClient
from local.cloud import LocalCloud
from tests.browser.console_page import PAGES, ConsolePage, photograph
from tests.e2e.demo_model_client import held_text_step, text_step
from tests.waiting import wait_until

API = re.compile(r":\d+/(admin/api/ai/.*|tools)$")
WORKSPACE = PAGES[1:]


def answer(status: int, body: Any) -> Callable[[Route], None]:
    return lambda route: route.fulfill(status=status, content_type="application/json", body=json.dumps(body))


def test_a_page_that_could_not_be_loaded_says_why_and_can_be_loaded_again(console: ConsolePage) -> None:
    page = console.page
    for path in WORKSPACE:
        page.route(API, answer(403, {"error": "Somebody has taken the right away."}))
        page.goto(f"{console.url}/console/#/{path}")
        shown = page.locator(f"#page .page-{path}")
        expect(shown.get_by_role("alert").first).to_contain_text("Somebody has taken the right away.")
        if path == "usage":
            photograph(page, "error")
        page.unroute(API)
        shown.get_by_role("button", name="Try again").first.click()
        expect(shown.get_by_role("alert")).to_have_count(0)
        expect(shown.locator("[aria-busy]")).to_have_count(0)


def test_who_was_signed_out_meanwhile_is_led_to_sign_in(console: ConsolePage, cloud: LocalCloud) -> None:
    page = console.page
    console.open("tools")
    for path in WORKSPACE:
        console.sign_in()
        for session in (cloud.directory / "console" / "sessions").iterdir():
            session.unlink()
        page.goto(f"{console.url}/console/#/{path}")
        shown = page.locator(f"#page .page-{path}")
        expect(shown.get_by_role("alert").first).to_contain_text("You were signed out.")
        expect(shown.get_by_role("button", name="Sign in").first).to_be_visible()
    page.get_by_role("button", name="Sign in").first.click()
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()


def test_a_slow_response_shows_on_the_page_that_asked_for_it_only(console: ConsolePage) -> None:
    page = console.page
    waiting: list[Route] = []
    page.route("**/audit?*", lambda route: waiting.append(route))
    page.goto(f"{console.url}/console/#/usage/7")
    expect(page.locator(".placeholder")).to_be_visible()
    photograph(page, "loading")
    page.get_by_role("link", name="Budgets").click()
    expect(page.get_by_role("heading", name="Budgets")).to_be_visible()
    waiting[0].continue_()
    expect(page.get_by_role("button", name="Save budgets")).to_be_visible()
    expect(page.locator(".figures")).to_have_count(0)


def test_a_page_that_was_opened_offline_shows_when_the_network_is_back(console: ConsolePage) -> None:
    page = console.page
    console.open("budgets")
    page.reload()  # else the file of the next page may be there already
    amount = page.get_by_label("Workspace: Dollars a month")
    amount.fill("7")
    page.context.set_offline(True)
    expect(page.locator(".offline")).to_be_visible()
    page.context.set_offline(False)
    expect(page.locator(".offline")).to_be_hidden()
    expect(amount).to_have_value("7")
    page.context.set_offline(True)
    page.get_by_role("link", name="Webhooks").click()
    expect(page.locator(".page-webhooks").get_by_role("alert")).to_contain_text("This page could not be loaded.")
    photograph(page, "offline")
    page.context.set_offline(False)
    expect(page.get_by_role("heading", name="Webhooks", exact=True)).to_be_visible()
    expect(page.locator("#page").get_by_role("alert")).to_have_count(0)


def test_the_editor_says_that_it_loads(console: ConsolePage) -> None:
    page = console.page
    waiting: list[Route] = []
    page.reload()  # else GrapesJS is there already
    page.route("**/grapes.min.js", lambda route: waiting.append(route))
    with page.expect_request("**/grapes.min.js"):
        page.goto(f"{console.url}/console/#/editor")
    expect(page.locator(".canvas-pane").get_by_role("status")).to_have_text("Loading …")
    photograph(page, "editor-loading")
    waiting[0].continue_()
    expect(page.locator(".canvas-pane").get_by_role("status")).to_have_count(0)


def test_thousands_of_rows_begin_with_the_first_and_the_others_are_there_for_who_asks(console: ConsolePage) -> None:
    page = console.page
    row = {"promptTokens": 1, "completionTokens": 2, "cacheReadTokens": 0, "cacheCreationTokens": 0, "chatCount": 1}
    row |= {"costUsd": 0.5}
    users = [row | {"userId": f"u{number}", "userLabel": f"Person {number}"} for number in range(3_000)]
    scopes = [row | {"scope": "site"}]
    audit = {"totals": row | {"unpricedRequests": 0}, "byDay": [row | {"day": "2026-11-28"}], "byModel": []}
    page.route("**/audit?*", answer(200, audit | {"byUser": users, "byScope": scopes}))
    console.open("usage")
    table = page.get_by_role("group", name="By user")
    expect(table.locator("tbody tr")).to_have_count(200)
    page.get_by_role("button", name="Show 2,800 more").click()
    expect(table.locator("tbody tr")).to_have_count(3_000)


def test_a_refresh_of_the_list_keeps_the_focus(
    console: ConsolePage, service: FermataClient, new_prompt: Callable[..., str], tmp_path: Path
) -> None:
    conversation = service.create_conversation("data")
    gate = tmp_path / "gate"
    prompt = new_prompt(held_text_step("It takes a while.", gate, after=4), text_step("Done."))
    bridge = service.start_turn_detached("data", prompt, conversation_id=conversation["id"])["bridgeId"]
    page = console.page
    console.open("turns")
    row = page.locator("tr", has=page.locator(f"a[href$='{bridge}']"))
    expect(row).to_contain_text("Running")
    row.get_by_role("button", name="Cancel").focus()
    with page.expect_response(lambda response: "/ai/turns" in response.url):
        pass
    expect(row.get_by_role("button", name="Cancel")).to_be_focused()
    row.get_by_role("link").click()
    expect(page.locator(".timeline")).to_be_visible()
    page.locator("details.log summary").click()
    expect(page.get_by_role("button", name="Cancel the turn of you")).to_be_visible()
    gate.touch()
    wait_until(lambda: service.get_bridge(bridge)["status"] == "done", "the turn is done")
    expect(page.locator(".facts")).to_contain_text("Done")
    expect(page.locator("details.log pre")).to_be_visible()
    expect(page.get_by_role("button", name="Cancel the turn of you")).to_have_count(0)
    console.expect_accessible()


def test_an_address_that_somebody_has_cut_is_told_in_words(console: ConsolePage) -> None:
    page = console.page
    page.goto(f"{console.url}/console/#/turns/%E0%A4%A")
    expect(page.locator("#page").get_by_role("alert")).to_be_visible()
    page.goto(f"{console.url}/console/#/nowhere")
    expect(page.get_by_role("toolbar")).to_be_visible()
