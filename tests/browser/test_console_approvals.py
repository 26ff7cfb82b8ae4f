"""Calls that a policy holds: asked in the builder's panel, decided there or on the page of approvals."""

import json
from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

import httpx
import pytest
from playwright.sync_api import Locator, Page, Route, expect

from local.cloud import LocalCloud
from tests.browser.console_page import ConsolePage, expect_accessible, find_accessibility_problems
from tests.browser.test_console_turns import body_id, canvas_of, expect_saved, insert_step, send
from tests.e2e.demo_model_client import text_step, tool_call_step
from tests.waiting import BACKSTOP_SECONDS

Prompt = Callable[..., str]


def set_policy(cloud: LocalCloud, policy: dict[str, object]) -> None:
    url, headers = f"{cloud.url}/admin/api/ai/approval-policy", {"authorization": f"Bearer {cloud.token}"}
    httpx.put(url, json=policy, headers=headers, timeout=BACKSTOP_SECONDS).raise_for_status()


@pytest.fixture(autouse=True)
def policy(cloud: LocalCloud) -> Iterator[None]:
    """Insertions need a person."""
    set_policy(cloud, {"rules": [{"effect": "ask", "tools": ["insertHtml"]}]})
    yield
    set_policy(cloud, {})


def open_inbox(console: ConsolePage) -> Page:
    inbox = console.page.context.new_page()
    inbox.goto(f"{console.url}/console/#/approvals")
    return inbox


def card_of(page: Page) -> Locator:
    return page.locator("fermata-panel").get_by_role("group", name="Approval: Add elements")


def test_a_held_call_outlives_a_reload_and_runs_once_it_is_approved_elsewhere(
    console: ConsolePage, new_prompt: Prompt
) -> None:
    console.open("editor")
    page = console.page
    send(page, new_prompt(tool_call_step(insert_step(page), text="I add it."), text_step("It is there.")))
    expect(card_of(page).get_by_role("button", name="Approve")).to_be_visible()
    expect_saved(page)
    page.reload()
    expect(card_of(page).get_by_role("button", name="Approve")).to_be_visible()
    expect(card_of(page)).to_contain_text("Added once")
    expect(canvas_of(page).locator(".added")).to_have_count(0)
    inbox = open_inbox(console)
    waiting = inbox.get_by_role("listitem").filter(has_text="Added once")
    expect(waiting).to_contain_text("A rule asks for it.")
    waiting.get_by_role("button", name="Approve").click()
    expect(waiting).to_contain_text("Approved by")
    expect(card_of(page)).to_contain_text("Approved")
    expect(page.locator("fermata-panel .call")).to_have_attribute("data-state", "ok")
    expect(canvas_of(page).locator(".added")).to_have_count(1)
    expect(page.locator("fermata-panel")).to_contain_text("It is there.")
    assert console.complaints == []


def test_an_element_that_a_turn_names_has_the_same_id_after_a_reload(console: ConsolePage) -> None:
    console.open("editor")
    page = console.page
    expect_saved(page)
    named = body_id(page)
    page.reload()
    page.locator("fermata-panel textarea").wait_for(state="attached")
    canvas_of(page).locator("body").wait_for()
    assert body_id(page) == named
    assert console.complaints == []


def test_a_denial_with_a_reason_is_read_by_the_person_and_by_the_model(
    console: ConsolePage, new_prompt: Prompt
) -> None:
    console.open("editor")
    page = console.page
    send(page, new_prompt(tool_call_step(insert_step(page), text="I add it."), text_step("Then I leave it.")))
    expect(card_of(page)).to_be_visible()
    inbox = open_inbox(console)
    waiting = inbox.get_by_role("listitem").filter(has_text="Added once")
    waiting.get_by_role("button", name="Deny").click()
    inbox.keyboard.type("Frozen until Monday.")
    waiting.get_by_role("button", name="Deny it").click()
    expect(card_of(page)).to_contain_text("Denied: Frozen until Monday.")
    expect(page.locator("fermata-panel")).to_contain_text("Then I leave it.")
    expect(canvas_of(page).locator(".added")).to_have_count(0)
    assert console.complaints == []


def test_the_inbox_shows_what_the_panel_decides_and_keeps_what_is_being_written(
    console: ConsolePage, new_prompt: Prompt
) -> None:
    console.open("editor")
    page = console.page
    parent = insert_step(page)[1]["parentId"]
    calls = [("insertHtml", {"parentId": parent, "html": f'<p class="added">{name}</p>'}) for name in ("One", "Two")]
    send(page, new_prompt(tool_call_step(*calls, text="I add two."), text_step("Done.")))
    cards = page.locator("fermata-panel").get_by_role("group", name="Approval: Add elements")
    expect(cards).to_have_count(2)
    inbox = open_inbox(console)
    one, two = (inbox.get_by_role("listitem").filter(has_text=f">{name}<") for name in ("One", "Two"))
    one.get_by_role("button", name="Change").click()
    field = inbox.get_by_role("textbox", name="html")
    field.fill('<p class="added">Other</p>')
    expect_accessible(inbox)
    cards.filter(has_text="Two").get_by_role("button", name="Deny").click()
    cards.filter(has_text="Two").get_by_role("button", name="Deny it").click()
    expect(inbox.get_by_text("Denied by")).to_be_visible()
    expect(two.get_by_role("button", name="Approve")).to_have_count(0)
    expect(field).to_have_value('<p class="added">Other</p>')
    inbox.get_by_role("button", name="Approve with changes").click()
    expect(canvas_of(page).locator(".added")).to_have_text("Other")
    expect(cards.first).to_contain_text("with changed arguments")
    assert console.complaints == []


def test_the_inbox_shows_a_page_and_more_for_who_asks(console: ConsolePage) -> None:
    page = console.page
    waiting = [play_approval(number) for number in range(25)]

    def answer(route: Route) -> None:
        name = urlsplit(route.request.url).path.rpartition("/")[2]
        if name != "approvals":
            body: dict[str, object] = {"approval": waiting[int(name)]}
        elif "cursor" in route.request.url:
            body = {"approvals": waiting[20:]}
        else:
            body = {"approvals": waiting[:20], "nextCursor": "more"}
        route.fulfill(status=200, content_type="application/json", body=json.dumps(body))

    page.route("**/ai/approvals**", answer)
    console.open("approvals")
    cards = page.get_by_role("list", name="Waiting calls").get_by_role("listitem")
    expect(cards).to_have_count(20)
    page.get_by_role("button", name="Show newer ones").click()
    expect(cards).to_have_count(25)
    expect(page.get_by_role("button", name="Show newer ones")).to_be_hidden()
    assert console.complaints == []


def play_approval(number: int) -> dict[str, object]:
    return {
        "approvalId": str(number),
        "state": "waiting",
        "bridgeId": "b1",
        "userId": "ada",
        "scope": "site",
        "toolName": "insertHtml",
        "description": "Adds elements.",
        "risk": "high",
        "capability": "write",
        "reasons": ["rule"],
        "input": {"html": f"<p>{number}</p>"},
        "inputHash": f"{number:064d}",
        "requestedAt": "2026-11-29T10:00:00Z",
        "deadline": "2099-11-29T10:00:00Z",
    }


def test_what_was_decided_last_is_listed_below_the_inbox(console: ConsolePage) -> None:
    page = console.page
    decision = {
        "at": "2026-11-29T10:00:00Z",
        "bridgeId": "b1",
        "tool": "submit_edit_plan",
        "outcome": "denied",
        "decidedBy": "grace",
        "reason": "Not before the fair.",
    }
    changed = {"outcome": "approved", "tool": "insertHtml", "inputHash": "a" * 64, "decidedInputHash": "b" * 64}
    plan = play_approval(1) | {"toolName": "submit_edit_plan", "pendingPlanId": "p", "reasons": ["destructivePlan"]}
    plan |= {"scope": "planner", "input": {"summary": "Removes /about.", "ops": []}}
    decisions = {"decisions": [decision, decision | changed]}
    answers = {"approvals": {"approvals": [plan]}, "approval-decisions": decisions}

    def answer(route: Route) -> None:
        name = urlsplit(route.request.url).path.rpartition("/")[2]
        body = answers.get(name, {"approval": plan})
        route.fulfill(status=200, content_type="application/json", body=json.dumps(body))

    page.route("**/ai/approval*", answer)
    page.route("**/ai/approvals/*", answer)
    console.open("approvals")
    expect(page.get_by_role("group", name="Approval: Edit plan of ada")).to_be_visible()
    row = page.get_by_role("row").filter(has_text="submit_edit_plan")
    expect(row).to_contain_text("denied")
    expect(row).to_contain_text("Not before the fair.")
    expect(page.get_by_role("row").filter(has_text="insertHtml")).to_contain_text("approved, changed")
    expect(page.get_by_text("Decided last")).to_have_count(1)
    card = page.get_by_role("group", name="Approval: Edit plan of ada")
    card.get_by_role("button", name="Change").click()
    expect(card.get_by_role("textbox")).to_have_count(2)  # its summary and its operations
    assert find_accessibility_problems(console.page) == []
    assert console.complaints == []


def test_the_policy_is_shown_and_set(console: ConsolePage, cloud: LocalCloud) -> None:
    page = console.page
    console.open("policy")
    rules = page.get_by_role("textbox", name="Rules")
    expect(rules).to_have_value('{"effect":"ask","tools":["insertHtml"]}')
    rules.fill('{"effect": "deny"')
    page.get_by_role("button", name="Save the policy").click()
    expect(page.get_by_role("alert")).to_contain_text("not valid JSON")
    rules.fill('{"effect": "deny", "tools": ["insertHtml"]}\n{"effect": "ask", "capability": "write"}')
    page.get_by_role("checkbox", name="and let it be another one").check()
    page.get_by_role("spinbutton", name="Time to decide").fill("2")
    with page.expect_response(lambda response: response.request.method == "PUT"):
        page.get_by_role("button", name="Save the policy").click()
    expect(page.get_by_text("Set by")).to_be_visible()
    url, headers = f"{cloud.url}/admin/api/ai/approval-policy", {"authorization": f"Bearer {cloud.token}"}
    stored = httpx.get(url, headers=headers, timeout=BACKSTOP_SECONDS).json()
    assert [rule["effect"] for rule in stored["rules"]] == ["deny", "ask"]
    assert (stored["separateApprover"], stored["waitSeconds"]) == (True, 7200)
    assert find_accessibility_problems(console.page) == []
    assert console.complaints == []
