"""Calls that wait for a decision, in the panel alone: the test plays the events and the service's answers."""

import json
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.chromium import COLOR_SCHEMES, Chromium
from tests.browser.console_page import AXE
from tests.browser.panel_page import lone_window, page, play_turns

__all__ = ["lone_window", "page"]

CALL = {"type": "toolCall", "seq": 1, "toolCallId": "c1", "toolName": "applyCss", "input": {"css": "a { color: red }"}}
APPROVAL = {
    "approvalId": "a1",
    "toolName": "applyCss",
    "input": {"css": "a { color: red }"},
    "inputHash": "0" * 64,
    "description": "Changes the styles of the page.",
    "reasons": ["rule"],
    "deadline": "2099-12-01T10:00:00Z",
}
REQUESTED = APPROVAL | {"type": "approvalRequested", "seq": 2, "toolCallId": "c1", "timestamp": "2026-11-29T10:00:00Z"}
DECIDED = {
    "type": "approvalDecided",
    "seq": 3,
    "approvalId": "a1",
    "toolCallId": "c1",
    "toolName": "applyCss",
    "inputHash": "0" * 64,
}
PLAY_SERVICE = """
answers => {
  window.decisions = [];
  const refuse = ({status, error}) => Object.assign(new Error(error), {status});
  client.approvals = {
    get: async () => { if (answers.get.status) throw refuse(answers.get); return answers.get; },
    decide: async (id, decision) => {
      decisions.push({id, ...decision});
      if (answers.decide.status) { answers.get = answers.after ?? answers.get; throw refuse(answers.decide); }
      return answers.decide;
    },
  };
  const properties = {css: {type: "string", description: "Rules to add."}, important: {type: "boolean"}};
  client.tools = {list: async () => [{name: "applyCss", inputSchema: {type: "object", properties}}]};
}
"""


@pytest.fixture
def panel(browser: Chromium, page: Page) -> Page:
    browser.run(lambda: play_turns(page))
    return page


def request_approval(page: Page, **answers: Any) -> None:
    waiting = APPROVAL | {"state": "waiting"}
    approved = waiting | {"state": "approved", "decidedBy": "ada"}
    page.evaluate(PLAY_SERVICE, {"get": waiting, "decide": approved} | answers)
    page.evaluate(f"turn.send({json.dumps(CALL)}, {json.dumps(REQUESTED)})")


def read_decisions(page: Page) -> list[dict[str, Any]]:
    decisions: list[dict[str, Any]] = page.evaluate("decisions")
    return decisions


def find_problems(page: Page) -> list[str]:
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE.read_text())
    problems: list[str] = page.evaluate("axe.run().then(({violations}) => violations.map(each => each.id))")
    return [problem for problem in problems if problem not in ("landmark-one-main", "region", "page-has-heading-one")]


def test_a_call_that_waits_says_what_why_and_until_when_and_is_approved(panel: Page) -> None:
    request_approval(panel)
    card = panel.get_by_role("group", name="Approval: Style a")
    expect(card).to_contain_text("Waits for a decision")
    expect(card).to_contain_text("2099")
    expect(card).to_contain_text("Changes the styles of the page.")
    expect(card).to_contain_text("A rule asks for it.")
    expect(card.locator("dd")).to_have_text("a { color: red }")
    expect(panel.locator("fermata-panel .thread .hidden-words[role=status]")).to_have_text(
        "Waits for a decision: Style a"
    )
    for scheme in COLOR_SCHEMES:
        panel.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        assert find_problems(panel) == []
    card.get_by_role("button", name="Approve").click()
    expect(card.get_by_text("Approved by ada.")).to_be_focused()
    assert read_decisions(panel) == [{"id": "a1", "approved": True, "inputHash": "0" * 64}]


def test_a_denial_takes_a_reason_and_escape_leads_back_without_stopping_the_turn(panel: Page) -> None:
    request_approval(panel, decide=APPROVAL | {"state": "denied", "decidedBy": "ada", "reason": "Not blue."})
    card = panel.get_by_role("group", name="Approval: Style a")
    card.get_by_role("button", name="Deny").press("Enter")
    expect(card.get_by_role("textbox", name="Reason")).to_be_focused()
    panel.keyboard.press("Escape")
    expect(card.get_by_role("button", name="Deny")).to_be_focused()
    panel.keyboard.press("Enter")
    panel.keyboard.type("Not blue.")
    assert find_problems(panel) == []
    card.get_by_role("button", name="Deny it").click()
    expect(card).to_contain_text("Denied by ada: Not blue.")
    assert [decision["reason"] for decision in read_decisions(panel)] == ["Not blue."]


def test_arguments_are_changed_in_fields_and_what_does_not_fit_is_told(panel: Page) -> None:
    request_approval(panel, decide={"status": 400, "error": "'css' is too long."})
    card = panel.get_by_role("group", name="Approval: Style a")
    card.get_by_role("button", name="Change").click()
    field = card.get_by_role("textbox", name="css")
    expect(field).to_be_focused()
    field.fill("a { color: blue }")
    card.get_by_role("checkbox", name="important").check()
    assert find_problems(panel) == []
    card.get_by_role("button", name="Approve with changes").click()
    expect(card.get_by_role("alert")).to_contain_text("'css' is too long.")
    expect(field).to_have_value("a { color: blue }")
    assert read_decisions(panel)[0]["input"] == {"css": "a { color: blue }", "important": True}


def test_what_is_being_written_about_one_call_stays_when_another_one_is_decided(panel: Page) -> None:
    second = {"toolCallId": "c2", "approvalId": "a2"}
    request_approval(panel)
    panel.evaluate(f"turn.send({json.dumps(CALL | second | {'seq': 3})})")
    cards = panel.get_by_role("group", name="Approval: Style a")
    cards.get_by_role("button", name="Change").click()
    field = cards.get_by_role("textbox", name="css")
    field.fill("a { color: blue }")
    panel.evaluate(f"turn.send({json.dumps(REQUESTED | second | {'seq': 4})})")
    expect(cards).to_have_count(2)
    panel.evaluate(f"turn.send({json.dumps(DECIDED | second | {'seq': 5, 'outcome': 'denied', 'approved': False})})")
    expect(cards.nth(1)).to_contain_text("Denied.")
    expect(field).to_have_value("a { color: blue }")
    expect(field).to_be_focused()


def test_whoever_may_not_decide_sees_the_call_without_buttons_and_then_the_decision(panel: Page) -> None:
    request_approval(panel, get={"status": 403, "error": "This takes the capability ai.tools.approve."})
    card = panel.get_by_role("group", name="Approval: Style a")
    expect(card).to_contain_text("Somebody who may approve calls has to decide.")
    expect(card.get_by_role("button")).to_have_count(0)
    denial = DECIDED | {"outcome": "denied", "approved": False, "reason": "Ask Eve first."}
    panel.evaluate(f"turn.send({json.dumps(denial)})")
    expect(card).to_contain_text("Denied: Ask Eve first.")
    expect(card.get_by_text("Somebody who may approve")).to_be_hidden()


def test_a_decision_that_comes_too_late_says_what_was_decided(panel: Page) -> None:
    elsewhere = APPROVAL | {"state": "denied", "decidedBy": "eve"}
    request_approval(panel, decide={"status": 409, "error": "This call has already been denied."}, after=elsewhere)
    card = panel.get_by_role("group", name="Approval: Style a")
    card.get_by_role("button", name="Approve").click()
    expect(card).to_contain_text("Your decision was not taken: Denied by eve.")


def test_other_arguments_than_those_shown_are_shown_and_decided_about_anew(panel: Page) -> None:
    changed = APPROVAL | {"state": "waiting", "input": {"css": "b {}"}, "inputHash": "1" * 64}
    request_approval(panel, decide={"status": 409, "error": "Another input."}, after=changed)
    card = panel.get_by_role("group", name="Approval: Style a")
    card.get_by_role("button", name="Approve").click()
    expect(card.get_by_role("alert")).to_contain_text("other arguments")
    expect(card.locator("dd")).to_have_text("b {}")
    card.get_by_role("button", name="Approve").click()
    panel.wait_for_function("decisions.length === 2")
    assert read_decisions(panel)[1]["inputHash"] == "1" * 64


def test_the_person_who_asked_is_told_that_another_one_has_to_decide(panel: Page) -> None:
    request_approval(panel, decide={"status": 403, "error": "Another person has to decide."})
    card = panel.get_by_role("group", name="Approval: Style a")
    card.get_by_role("button", name="Approve").click()
    expect(card).to_contain_text("Another person has to decide")
    expect(card.get_by_role("button")).to_have_count(0)


@pytest.mark.parametrize(
    ("outcome", "words"),
    [("expired", "Nobody decided in time"), ("stale", "The tool was changed"), ("approved", "Approved")],
)
def test_what_became_of_a_call_is_shown_as_it_is_told(panel: Page, outcome: str, words: str) -> None:
    request_approval(panel)
    card = panel.get_by_role("group", name="Approval: Style a")
    expect(card.get_by_role("button", name="Approve")).to_be_visible()
    panel.evaluate(f"turn.send({json.dumps(DECIDED | {'outcome': outcome, 'approved': outcome == 'approved'})})")
    expect(card).to_contain_text(words)
    expect(card.get_by_role("button")).to_have_count(0)


def test_a_turn_that_ends_without_a_decision_closes_its_cards(panel: Page) -> None:
    request_approval(panel)
    card = panel.get_by_role("group", name="Approval: Style a")
    expect(card.get_by_role("button", name="Approve")).to_be_visible()
    panel.evaluate('turn.send({type: "cancelled", seq: 3, reason: "Stopped."})')
    expect(card).to_contain_text("ended without a decision")
    expect(card.get_by_role("button")).to_have_count(0)
