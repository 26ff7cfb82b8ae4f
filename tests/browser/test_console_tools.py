"""The pages of remote tools and webhooks. The service's answers are played where they need a public address."""

import json
from typing import Any

from playwright.sync_api import Page, Request, Route, expect

from tests.browser.console_page import ConsolePage, photograph

TOOLS, WEBHOOKS = "**/tools**", "**/admin/api/ai/webhooks**"
MANIFEST = {
    "name": "pim.getProduct",
    "description": "Finds a product by its number.",
    "inputSchema": {"type": "object", "properties": {"sku": {"type": "string"}}},
    "capability": "read",
}
TOOL = {
    "manifest": MANIFEST,
    "source": "remote",
    "endpoint": "https://pim.example.com/get",
    "scopes": ["site"],
    "headerNames": ["x-api-key"],
    "definition": "d1",
    "registeredAt": "2026-11-29T10:00:00Z",
    "updatedAt": "2026-11-29T10:00:00Z",
}
WEBHOOK = {
    "id": "w1",
    "url": "https://shop.example.com/hook",
    "events": ["turnEnd"],
    "enabled": True,
    "mayAnswer": True,
    "createdAt": "2026-11-29T10:00:00Z",
    "updatedAt": "2026-11-29T10:00:00Z",
}
DELIVERY = {
    "id": "d1",
    "eventId": "e1",
    "event": "turnEnd",
    "bridgeId": "b1",
    "at": "2026-11-29T10:00:00Z",
    "state": "failed",
    "attempts": 5,
    "status": 503,
    "error": "The receiver has answered 503.",
}
SECRET = "whsec_" + "c2VjcmV0" * 4


class Played:
    """Answers by method and the end of the path, and what was sent."""

    def __init__(self, page: Page, pattern: str, answers: dict[str, tuple[int, Any]]) -> None:
        self.sent: list[tuple[str, str, Any]] = []
        self.answers = answers
        page.route(pattern, self._answer)

    def _answer(self, route: Route) -> None:
        request = route.request
        if request.resource_type not in ("fetch", "xhr"):
            return route.continue_()
        key = f"{request.method} {request.url.split('/')[-1]}"
        self.sent.append((request.method, request.url, read_body(request)))
        status, body = self.answers[key]
        return route.fulfill(status=status, content_type="application/json", body=json.dumps(body))

    def list_changes(self) -> list[tuple[str, Any]]:
        return [(method, body) for method, _, body in self.sent if method != "GET"]


def read_body(request: Request) -> Any:
    return json.loads(request.post_data) if request.post_data else None


def test_a_tool_is_registered_from_a_pasted_manifest_and_its_secret_is_shown_once(console: ConsolePage) -> None:
    page = console.page
    answers = {"GET tools": (200, {"tools": []}), "POST register": (201, {"tool": TOOL, "signingSecret": SECRET})}
    played = Played(page, TOOLS, answers)
    console.open("tools")
    page.get_by_role("button", name="Register a tool").click()
    dialog = page.get_by_role("dialog", name="Register a tool")
    dialog.get_by_role("textbox", name="Manifest").fill("{")
    dialog.get_by_role("button", name="Register a tool").click()
    expect(dialog.get_by_role("alert")).to_have_text("The manifest is not valid JSON.")
    dialog.get_by_role("textbox", name="Manifest").fill(json.dumps(MANIFEST))
    dialog.get_by_role("textbox", name="Endpoint").fill("https://pim.example.com/get")
    dialog.get_by_role("textbox", name="Headers").fill("x-api-key: sesame")
    console.expect_accessible()
    played.answers["GET tools"] = (200, {"tools": [TOOL]})
    dialog.get_by_role("button", name="Register a tool").click()
    expect(page.get_by_role("textbox", name="Signing secret")).to_have_value(SECRET)
    page.get_by_role("button", name="I have stored it").click()
    row = page.get_by_role("row", name="pim.getProduct")
    expect(row).to_contain_text("sealed headers: x-api-key")
    registered = {"manifest": MANIFEST, "endpoint": "https://pim.example.com/get"}
    assert played.list_changes() == [("POST", registered | {"staticHeaders": {"x-api-key": "sesame"}})]
    assert SECRET not in page.content()
    assert "sesame" not in page.content()
    console.expect_accessible()
    assert console.complaints == []


def test_a_tool_is_disabled_and_deleted(console: ConsolePage) -> None:
    page = console.page
    disabled = TOOL | {"manifest": MANIFEST | {"enabled": False}}
    answers = {"GET tools": (200, {"tools": [TOOL]}), "PATCH pim.getProduct": (200, {"tool": disabled})}
    played = Played(page, TOOLS, answers | {"DELETE pim.getProduct": (200, {"ok": True})})
    console.open("tools")
    played.answers["GET tools"] = (200, {"tools": [disabled]})
    page.get_by_role("button", name="Disable pim.getProduct").click()
    expect(page.get_by_role("row", name="pim.getProduct")).to_contain_text("Disabled")
    played.answers["GET tools"] = (200, {"tools": []})
    page.get_by_role("button", name="Delete pim.getProduct").click()
    page.get_by_role("button", name="Delete", exact=True).click()
    expect(page.get_by_text("No remote tools yet")).to_be_visible()
    photograph(page, "empty")
    assert played.list_changes() == [("PATCH", {"enabled": False}), ("DELETE", None)]


def test_what_the_service_refuses_is_told_where_it_was_asked(console: ConsolePage) -> None:
    page = console.page
    error = {"error": "'inputSchema' must be an object.", "code": "invalid_manifest", "field": "inputSchema"}
    Played(page, TOOLS, {"GET tools": (200, {"tools": []}), "POST register": (400, error)})
    console.open("tools")
    page.get_by_role("button", name="Register a tool").click()
    dialog = page.get_by_role("dialog", name="Register a tool")
    dialog.get_by_role("textbox", name="Manifest").fill(json.dumps({"manifest": {}, "endpoint": "https://a.example"}))
    dialog.get_by_role("button", name="Register a tool").click()
    expect(dialog.get_by_role("alert")).to_have_text("'inputSchema' must be an object.")


def test_a_webhook_is_added_and_its_deliveries_are_sent_again(console: ConsolePage) -> None:
    page = console.page
    answers = {
        "GET webhooks": (200, {"webhooks": []}),
        "POST webhooks": (201, {"webhook": WEBHOOK, "signingSecret": SECRET}),
        "GET deliveries": (200, {"deliveries": [DELIVERY]}),
        "POST redeliver": (202, {"ok": True}),
        "PATCH w1": (200, {"webhook": WEBHOOK | {"enabled": False}}),
    }
    played = Played(page, WEBHOOKS, answers)
    console.open("webhooks")
    page.get_by_role("button", name="Add a webhook").click()
    page.get_by_role("textbox", name="Address").fill("https://shop.example.com/hook")
    page.get_by_role("checkbox", name="toolRequest").uncheck()
    console.expect_accessible()
    played.answers["GET webhooks"] = (200, {"webhooks": [WEBHOOK]})
    page.get_by_role("button", name="Add", exact=True).click()
    page.get_by_role("button", name="I have stored it").click()
    expect(page.get_by_role("row", name="shop.example.com")).to_contain_text("may answer")
    console.expect_accessible()
    page.get_by_role("button", name="Turn off https://shop.example.com/hook").click()
    page.get_by_role("link", name="Deliveries https://shop.example.com/hook").click()
    row = page.get_by_role("row", name="Failed")
    expect(row).to_contain_text("503 · The receiver has answered 503.")
    console.expect_accessible()
    row.get_by_role("button", name="Deliver again").click()
    expect(page.get_by_text("It is delivered again.")).to_be_visible()
    new = {"url": "https://shop.example.com/hook", "events": ["approvalRequest", "turnEnd"], "mayAnswer": False}
    assert played.list_changes() == [("POST", new), ("PATCH", {"enabled": False}), ("POST", None)]
    assert console.complaints == []
