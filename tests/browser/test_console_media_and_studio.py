"""Images and the studio in the console: each a walk of one person, over the real service."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Page, expect

from local.cloud import LocalCloud
from tests.browser.chromium import Chromium
from tests.browser.console_page import ConsolePage
from tests.browser.test_console_content import Space, expect_accessible, open_part
from tests.images import make_image

HOSTILE = "<img src=x onerror=alert(1)>\u202egnp.exe"


@pytest.fixture(scope="module")
def space(cloud: LocalCloud) -> Iterator[Space]:
    headers = {"Authorization": f"Bearer {cloud.token}"}
    with httpx.Client(base_url=f"{cloud.url}/admin/api/ai/content", headers=headers, timeout=60) as client:
        yield Space(client)


@pytest.fixture
def console(browser: Chromium, page: Page, cloud: LocalCloud) -> ConsolePage:
    return browser.run(lambda: ConsolePage(page, cloud))


def test_images_are_uploaded_described_and_deleted(console: ConsolePage, space: Space, tmp_path: Path) -> None:
    page = open_part(console, space, "media")
    expect(page.get_by_role("heading", name="No images yet")).to_be_visible()
    (tmp_path / "rye.jpg").write_bytes(make_image(7))
    (tmp_path / "notes.txt").write_text("no image")
    page.get_by_label("Upload images").set_input_files([tmp_path / "rye.jpg", tmp_path / "notes.txt"])
    expect(page.get_by_role("alert")).to_contain_text("This is no JPEG")
    thumbnail = page.locator(".media-grid img")
    expect(page.locator(".media-grid li")).to_have_count(1)
    page.wait_for_function("document.querySelector('.media-grid img')?.naturalWidth > 0")
    expect_accessible(console)
    page.set_viewport_size({"width": 360, "height": 720})
    assert page.evaluate("document.querySelector('#page').scrollWidth") == 360
    thumbnail.click()
    page.get_by_label("Alternative text").fill(HOSTILE)
    page.get_by_label("Tags").fill("bread\nrye")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("heading", name="gnp.exe")).to_be_visible()
    (stored,) = space.send("GET", f"{space.name}/main/documents/asset")["documents"]
    fields = space.read(stored)["locales"]["data"]
    assert (stored["title"], fields["alt"], fields["tags"]) == (HOSTILE, HOSTILE, ["bread", "rye"])
    assert page.evaluate("document.querySelector('#page').scrollWidth") == 360
    expect_accessible(console)
    page.get_by_label("Description").fill("Mine")
    space.change(stored, title="Theirs")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("alert")).to_contain_text("Somebody has changed this document meanwhile.")
    page.get_by_role("button", name="Load the newest version").click()
    expect(page.get_by_role("heading", name="Theirs")).to_be_visible()
    page.get_by_role("button", name="Delete", exact=True).click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.get_by_role("heading", name="No images yet")).to_be_visible()
    assert [one for one in console.complaints if "status of 412" not in one] == []  # what the browser says of it
    assert console.read_violations() == []
