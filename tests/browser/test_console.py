"""The console in a real browser, with data of the local cloud."""

import csv
import io
import os
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from fermata.usage.ledger import ledger_store
from fermata_client import FermataClient
from local.cloud import LocalCloud
from local.seed import TENANT
from tests.browser.console_page import PAGES, ConsolePage, find_accessibility_problems, photograph
from tests.waiting import wait_until


def test_a_person_without_a_link_is_told_how_to_get_one(page: Page, cloud: LocalCloud) -> None:
    page.goto(cloud.url)
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    expect(page.get_by_role("status")).to_contain_text("make console")
    photograph(page, "signed-out")


def test_a_link_works_once_and_leaves_no_trace_in_the_address(page: Page, cloud: LocalCloud) -> None:
    console = ConsolePage(page, cloud)
    page.context.clear_cookies()
    console.open_link()
    expect(console.page.get_by_role("link", name="Usage")).to_be_visible()
    assert "code" not in console.page.url
    assert console.page.evaluate("document.cookie") == ""
    console.page.reload()
    expect(console.page.get_by_role("link", name="Usage")).to_be_visible()
    console.page.get_by_role("button", name="Sign out").click()
    expect(console.page.get_by_role("heading", name="Sign in")).to_be_visible()


def test_all_pages_are_shown_without_complaints(console: ConsolePage) -> None:
    console.page.emulate_media(reduced_motion="reduce")  # colours that change slowly have less contrast for a moment
    problems = {}
    for path in PAGES:
        console.open(path)
        problems[path] = find_accessibility_problems(console.page)
    assert problems == {path: [] for path in PAGES}
    assert console.complaints == []
    assert console.read_violations() == []


def test_all_pages_fit_a_phone(console: ConsolePage) -> None:
    console.page.set_viewport_size({"width": 360, "height": 720})
    widths = "[document.documentElement.scrollWidth, document.querySelector('#page').scrollWidth]"
    for path in PAGES:
        console.open(path)
        if path in ("editor", "usage"):
            photograph(console.page, f"phone-{path}")
        assert (path, max(console.page.evaluate(widths))) == (path, 360)
    console.page.get_by_role("button", name="Menu").click()
    expect(console.page.get_by_role("link", name="Budgets")).to_be_visible()


def test_the_agent_edits_the_page_and_a_reload_shows_the_same(console: ConsolePage) -> None:
    console.open("editor")
    console.ask("Add a pricing section")
    canvas = console.page.frame_locator(".canvas iframe.gjs-frame")
    expect(canvas.get_by_role("heading", name="Pricing").first).to_be_visible()
    expect(console.page.locator(".saved")).to_have_text("Saved in this browser")
    console.page.reload()
    expect(canvas.get_by_role("heading", name="Pricing").first).to_be_visible()
    expect(console.page.locator("fermata-panel")).to_contain_text("I added a section about pricing")
    assert console.complaints == []
    assert console.read_violations() == []


ROOT = Path(__file__).resolve().parents[2]
HOSTILE_PAGE = """<!doctype html><html><head><title>Hostile</title>
<script>top.stolen = 'script'; fetch('/admin/api/ai/credentials')</script></head>
<body onload="top.stolen = 'onload'"><h1>Hostile</h1><img src="x" onerror="top.stolen = 'onerror'">
<div data-gjs-script="top.stolen = 'component'">x</div><svg onload="top.stolen = 'svg'"></svg>
<iframe srcdoc="<script>top.stolen = 'srcdoc'</script>"></iframe><a href="javascript:top.stolen = 'link'">Click me</a>
<form action="/admin/api/ai/erasures" method="post"><button>Send</button></form></body></html>"""


def test_the_usage_and_its_csv_are_those_of_the_ledger(
    console: ConsolePage, cloud: LocalCloud, service: FermataClient
) -> None:
    conversation = service.create_conversation("data")
    with service.start_turn("data", "Hello", conversation_id=conversation["id"]) as events:
        assert list(events)[-1]["type"] == "done"
    resources = cloud.resources()

    def find_counted_requests() -> list[Any]:
        """Find all requests once they are counted. Turns of tests before may still write some."""
        rows = ledger_store.read_ledger_rows(resources, TENANT, "2026-01-01", "2100-01-01")
        found = [row for row in rows if "cost" in row]
        counted = service.get_audit()["totals"]["promptTokens"]
        return found if counted == sum(row["prompt"] for row in found) else []

    requests = wait_until(find_counted_requests, "the usage is counted")
    prompt_tokens = sum(row["prompt"] for row in requests)
    cost = float(sum(row["cost"] for row in requests))
    console.open("usage")
    figures = console.page.locator(".figures")
    expect(figures).to_contain_text(f"{prompt_tokens:,}")
    with console.page.expect_download() as download:
        console.page.get_by_role("button", name="Download CSV").click()
    table = list(csv.DictReader(io.StringIO(Path(download.value.path()).read_text("utf-8-sig"))))
    (total,) = [row for row in table if row["group"] == "total"]
    assert (int(total["promptTokens"]), float(total["costUsd"])) == (prompt_tokens, pytest.approx(cost, abs=1e-9))
    days = [float(row["costUsd"]) for row in table if row["group"] == "day"]
    assert sum(days) == pytest.approx(cost, abs=1e-9)


def test_an_operator_cancels_a_turn_that_waits(console: ConsolePage, service: FermataClient) -> None:
    conversation = service.create_conversation("site")
    started = service.start_turn_detached(
        "site", "Add a pricing section", conversation_id=conversation["id"], snapshot={"pages": []}
    )
    bridge = started["bridgeId"]
    wait_until(lambda: service.get_bridge(bridge)["status"] == "paused", "it waits for the editor")
    console.open("turns")
    row = console.page.locator("tr", has=console.page.locator(f"a[href$='{bridge}']"))
    expect(row).to_contain_text("Waiting")
    row.get_by_role("button", name="Cancel").click()
    console.page.get_by_role("button", name="Cancel the turn", exact=True).click()
    expect(row).to_contain_text("Cancelled")
    assert service.get_bridge(bridge)["status"] == "cancelled"
    row.get_by_role("link").click()
    expect(console.page.get_by_role("heading", name="What it did")).to_be_visible()
    expect(console.page.locator(".timeline")).to_contain_text("Round 1")
    assert console.complaints == []


def test_a_key_is_added_tested_and_deleted_and_never_shown(console: ConsolePage) -> None:
    console.open("providers")
    console.page.get_by_role("button", name="Add a key").click()
    console.page.get_by_label("Name").fill("Second key")
    console.page.get_by_label("API key").fill("sk-ant-secret-0123456789")
    console.page.get_by_role("button", name="Add", exact=True).click()
    row = console.page.get_by_role("row", name="Second key")
    row.get_by_role("button", name="Test").click()
    expect(row.get_by_role("status")).not_to_have_text("Testing …")
    expect(row.get_by_role("status")).not_to_be_empty()
    assert "sk-ant-secret" not in console.page.content()
    row.get_by_role("button", name="Delete").click()
    console.page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(row).to_have_count(0)


def test_budgets_are_set_and_taken_away(console: ConsolePage) -> None:
    console.open("budgets")
    amount = console.page.get_by_label("Workspace: Dollars a month")
    amount.fill("1000")
    console.page.get_by_role("button", name="Save budgets").click()
    expect(console.page.locator(".meter-row").nth(1)).to_contain_text("of $1,000.00 spent")
    amount.fill("")
    console.page.get_by_role("button", name="Save budgets").click()
    expect(console.page.locator(".meter-row").nth(1)).to_contain_text("no limit")


def test_an_imported_page_runs_nothing_and_is_exported_as_a_file(console: ConsolePage) -> None:
    console.open("editor")
    asked: list[str] = []
    console.page.on("request", lambda request: asked.append(request.url))
    console.page.get_by_role("button", name="My first site").click()
    page = {"name": "hostile.html", "mimeType": "text/html", "buffer": HOSTILE_PAGE.encode()}
    console.page.get_by_label("HTML file").set_input_files(page)
    canvas = console.page.frame_locator(".canvas iframe.gjs-frame")
    expect(canvas.get_by_role("heading", name="Hostile")).to_be_visible()
    canvas.get_by_text("Click me").click()
    assert console.page.evaluate("window.stolen") is None
    assert [url for url in asked if url.endswith(("/erasures", "/x"))] in ([], [f"{console.url}/console/x"])
    console.page.get_by_role("button", name="Export").click()
    with console.page.expect_download() as download:
        console.page.get_by_role("button", name="This page as one file").click()
    exported = Path(download.value.path()).read_text()
    assert exported.startswith("<!doctype html>")
    assert "Hostile</h1>" in exported


def test_the_main_views_are_photographed(console: ConsolePage) -> None:
    """Write the screenshots of the README anew with `FERMATA_SCREENSHOTS=docs/images`; otherwise into `build/`."""
    folder = ROOT / os.environ.get("FERMATA_SCREENSHOTS", "build/screenshots")
    console.page.set_viewport_size({"width": 1360, "height": 820})
    console.open("editor")
    console.ask("Add a pricing section")
    canvas = console.page.frame_locator(".canvas iframe.gjs-frame")
    canvas.get_by_role("heading", name="Pricing").first.scroll_into_view_if_needed()
    expect(console.page.locator(".saved")).to_have_text("Saved in this browser")
    console.page.screenshot(path=folder / "editor.png", animations="disabled")
    console.page.emulate_media(color_scheme="dark")
    console.open("turns")
    console.page.locator(".page-turns tbody a").first.click()
    expect(console.page.locator(".timeline")).to_be_visible()
    console.page.screenshot(path=folder / "turn.png", animations="disabled")
    for path in ("usage", "providers", "models", "budgets"):
        console.open(path)
        console.page.screenshot(path=ROOT / "build" / "screenshots" / f"{path}.png", animations="disabled")
    assert (folder / "editor.png").stat().st_size > 10_000
