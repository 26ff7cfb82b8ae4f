"""Images and the studio in the console: each a walk of one person, over the real service."""

import re
from pathlib import Path

import httpx
from playwright.sync_api import expect

from fermata_client import FermataClient
from local.cloud import LocalCloud
from local.console_sign_in import make_sign_in_link
from local.open_studio_example import open_studio_example
from tests.browser.console_page import ConsolePage, photograph
from tests.browser.console_space import Space, open_part, space
from tests.images import make_image

__all__ = ["space"]

HOSTILE = "<img src=x onerror=alert(1)>\u202egnp.exe"


def test_images_are_uploaded_described_and_deleted(console: ConsolePage, space: Space, tmp_path: Path) -> None:
    page = open_part(console, space, "media")
    expect(page.get_by_role("heading", name="No images yet")).to_be_visible()
    (tmp_path / "rye.jpg").write_bytes(make_image(7))
    (tmp_path / "notes.txt").write_text("no image")
    page.get_by_label("Upload files").set_input_files([tmp_path / "rye.jpg", tmp_path / "notes.txt"])
    expect(page.get_by_role("alert")).to_contain_text("This is no JPEG")
    thumbnail = page.locator(".media-grid img")
    expect(page.locator(".media-grid li")).to_have_count(1)
    expect(thumbnail).to_have_js_property("naturalWidth", 7)  # the page's policy lets nothing be evaluated in a loop
    console.expect_accessible()
    page.set_viewport_size({"width": 360, "height": 720})
    assert page.evaluate("document.querySelector('#page').scrollWidth") == 360
    thumbnail.click()
    page.get_by_label("Alternative text", exact=False).first.fill(HOSTILE)
    page.get_by_label("Alternative text (de)").fill("Ein Brot")
    page.get_by_label("Tags").fill("bread\nrye")
    page.get_by_label("Across").press("End")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("heading", name="gnp.exe")).to_be_visible()
    (stored,) = space.send("GET", f"{space.name}/main/documents/asset")["documents"]
    fields = space.read(stored)["locales"]["data"]
    assert (stored["title"], fields["alt"], fields["tags"]) == (HOSTILE, HOSTILE, ["bread", "rye"])
    assert (fields["altTexts"], fields["focalPoint"]) == ({"de": "Ein Brot"}, {"x": 1, "y": 0.5})
    assert page.evaluate("document.querySelector('#page').scrollWidth") == 360
    console.expect_accessible()
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


def test_a_newcomer_opens_the_sample_project_and_the_assistant_works_on_it(
    console: ConsolePage, cloud: LocalCloud, service: FermataClient, space: Space
) -> None:
    name = f"{space.name}-studio"
    assert open_studio_example(service, name)
    assert not open_studio_example(service, name)
    page = console.page
    page.goto(make_sign_in_link(cloud.url, cloud.directory, f"studio/{name}/main/documents/bread"))
    missing = page.get_by_role("link", name="Rye bread, de: missing")
    expect(missing).to_be_visible()
    assert "code=" not in page.url
    console.expect_accessible()
    console.ask("Translate “Rye bread” to German")
    page.get_by_role("link", name="Rye bread, de: written").click()
    expect(page.locator("details.fold[open]", has_text="de").get_by_label("name · required")).to_have_value(
        "[de] Roggen Brot"
    )
    page.locator(".segments").get_by_role("link", name="Models").click()
    page.get_by_role("link", name="Breads").click()
    expect(page.get_by_role("listitem").filter(has_text="baker relation")).to_contain_text("→ baker")
    page.get_by_role("link", name="Change sets").click()
    page.get_by_role("link", name="Winter hours").click()
    expect(page.get_by_role("region", name="bread/spelt-roll").locator("ins", has_text="1.1")).to_be_visible()
    expect(page.get_by_role("region", name="shop/main").locator("ins b").first).to_contain_text("7")
    page.set_viewport_size({"width": 360, "height": 720})
    assert page.evaluate("document.querySelector('#page').scrollWidth") == 360
    page.set_viewport_size({"width": 1280, "height": 900})
    change = {"locales": {"en": {"hours": "Always"}}}
    space.send("PATCH", f"{name}/main/documents/shop/main", change)
    page.get_by_role("button", name="Merge", exact=True).click()
    conflict = page.get_by_role("alert")
    expect(conflict.get_by_role("group", name="shop/main en.hours")).to_contain_text("Always")
    console.expect_accessible()
    conflict.get_by_role("button", name="Merge, and keep what is here").click()
    expect(page.get_by_text("What it has changed is stored")).to_be_visible()
    shop = space.send("GET", f"{name}/main/documents/shop/main")["document"]
    assert shop["locales"]["en"]["hours"] == "Monday to Saturday, 7 to 17"
    form = {"enabled": True, "exposedFields": ["name"]}
    question = {"kind": "collection", "title": "Questions", "fields": {"name": {"type": "string"}}, "form": form}
    space.send("PUT", f"{name}/main/models/question", question)
    sent = httpx.post(f"{cloud.url}/delivery/forms/local/{name}/main/question", json={"data": {"name": HOSTILE}})
    assert sent.status_code == 201, sent.text
    page.get_by_role("link", name="Submissions").click()
    expect(page.locator(".card")).to_contain_text("<img src=x onerror=alert(1)>")
    page.get_by_role("button", name="Approve").click()
    expect(page.get_by_role("heading", name="Nothing waits")).to_be_visible()
    assert space.send("GET", f"{name}/main/documents/question")["total"] == 1
    page.get_by_role("link", name="Change the form").click()
    in_a_minute = page.get_by_label("From one address in a minute")
    in_a_minute.fill("11")
    page.get_by_role("button", name="Save the form").click()
    expect(page.get_by_role("alert")).to_contain_text("a whole number from 1 to 10")
    expect(in_a_minute).to_be_focused()
    console.expect_accessible()
    photograph(page, "studio-form")
    page.set_viewport_size({"width": 360, "height": 720})
    assert page.evaluate("document.querySelector('#page').scrollWidth") == 360
    page.set_viewport_size({"width": 1280, "height": 900})
    in_a_minute.fill("5")
    page.get_by_label("required name").check()
    page.get_by_label("Visitors may send it").uncheck()
    expect(page.get_by_role("region", name="What visitors see")).to_contain_text("closed for visitors")
    page.get_by_role("button", name="Save the form").click()
    expect(page.locator("#announcements")).to_contain_text("The form is saved.")
    stored = space.send("GET", f"{name}/main/models/question")["model"]["form"]
    assert (stored["public"], stored["limits"]["perMinute"]) == (False, 5)
    assert stored["requiredOverrides"] == {"name": True}
    page.get_by_label("Visitors may send it").check()
    page.get_by_label("Visitors solve the captcha").check()
    page.get_by_role("button", name="Set up a captcha").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Site key").fill("0x4AAA")
    dialog.get_by_role("button", name="Save the captcha").click()
    expect(dialog.get_by_role("alert")).to_contain_text("'secret' is missing")
    dialog.get_by_label("Secret key").fill("sealed")
    dialog.get_by_role("button", name="Save the captcha").click()
    expect(page.get_by_text("captcha is of Turnstile")).to_be_visible()
    page.get_by_role("button", name="Save the form").click()
    place = page.get_by_role("region", name="On your site")
    path = f"/delivery/forms/local/{name}/main/question"
    expect(place.get_by_role("textbox", name="Address")).to_have_value(f"{cloud.url}{path}")
    expect(place.get_by_role("textbox", name="For a page")).to_have_value(
        re.compile(r'action="[^"]*locale=en"[^§]*data-sitekey="0x4AAA"')
    )
    console.expect_accessible()
    page.get_by_role("link", name="Health").click()
    expect(page.get_by_text("of 100")).to_be_visible()
    console.expect_accessible()
    page.get_by_role("link", name="Members").click()
    page.get_by_role("button", name="Add a member").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Person").fill("bob<b>\u202e")
    dialog.get_by_label("Only these languages").fill("de")
    dialog.get_by_role("button", name="Add").click()
    expect(dialog.get_by_role("alert")).to_contain_text("is the id of a user")
    dialog.get_by_label("Person").fill("bob")
    dialog.get_by_role("button", name="Add").click()
    expect(page.get_by_role("row", name="bob editor all de")).to_be_visible()
    console.expect_accessible()
    page.get_by_role("link", name="Keys").click()
    page.get_by_role("button", name="New key").click()
    dialog.locator("input[name=label]").fill("Kiosk")
    dialog.get_by_label("Only these models").fill("bread")
    dialog.get_by_role("button", name="New key").click()
    page.get_by_role("dialog", name="The key").get_by_role("button", name="I have stored it").click()
    expect(page.get_by_role("row", name="Kiosk")).to_contain_text("10 a minute, 1,000 a month")
    page.get_by_role("button", name="Change Kiosk").click()
    expect(dialog.get_by_label("Only these models")).to_have_value("bread")
    dialog.get_by_label("Only these tools").fill("brain_query")
    dialog.get_by_label("Messages a minute").fill("3")
    dialog.get_by_role("button", name="Save").click()
    expect(page.get_by_role("row", name="Kiosk")).to_contain_text("brain_query")
    expect(page.get_by_role("row", name="Kiosk")).to_contain_text("3 a minute")
    page.get_by_role("button", name="Revoke Kiosk").click()
    dialog.get_by_role("button", name="Revoke").click()
    expect(page.get_by_role("row", name="Kiosk")).to_contain_text("revoked")
    assert [one for one in console.complaints if "status of 4" not in one] == []
    assert console.read_violations() == []
