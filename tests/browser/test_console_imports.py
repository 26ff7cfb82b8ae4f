"""Files and folders are imported into the console's builder as they are, and exported without losing anything."""

from pathlib import Path

import pytest
from playwright.sync_api import FrameLocator, Page, Response, expect

from tests.browser.chromium import Chromium
from tests.browser.console_page import ConsolePage

PIXEL = (
    b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00\x1f\x15\xc4\x89"
    b"\x00\x00\x00\rIDATx\x9cc\xf8\xff\xff?\x00\x05\xfe\x02\xfe\xa75\x81\x84\x00\x00\x00\x00IEND\xaeB`\x82"
)
PAGES = Path(__file__).parent / "imported_pages"
INDEX = (PAGES / "boulangerie.html").read_text()
CONTACT = '<html><head><meta charset="iso-8859-1"><title>Contact</title></head><body><h1>Café</h1></body></html>'


@pytest.fixture
def console(browser: Chromium, console: ConsolePage) -> ConsolePage:
    browser.run(lambda: console.open("editor"))
    return console


def canvas_of(page: Page) -> FrameLocator:
    return page.frame_locator(".canvas iframe.gjs-frame")


def make_folder(root: Path) -> Path:
    site = root / "site"
    (site / "css").mkdir(parents=True)
    (site / "img").mkdir()
    (site / "index.html").write_text(INDEX)
    (site / "contact.html").write_bytes(CONTACT.encode("latin-1"))
    (site / "css" / "site.css").write_text(
        '@import "base.css"; h1{color:rgb(255, 0, 0)} .far{background:url(../img/a%20b.png)}'
    )
    (site / "css" / "base.css").write_text('@import url("site.css"); h1{margin-left:7px}')
    (site / "css" / "print.css").write_text("h1{color:rgb(0, 128, 0)}")
    (site / "img" / "a b.png").write_bytes(PIXEL)
    return site


def import_file(page: Page, name: str, content: bytes) -> None:
    page.locator(".site-button").click()
    page.get_by_label("HTML file").set_input_files({"name": name, "mimeType": "text/html", "buffer": content})


def export_page(page: Page) -> str:
    page.get_by_role("button", name="Export").click()
    with page.expect_download() as download:
        page.get_by_role("button", name="This page as one file").click()
    return Path(download.value.path()).read_text()


def test_a_folder_is_imported_with_its_styles_and_pictures(console: ConsolePage, tmp_path: Path) -> None:
    page = console.page
    page.locator(".site-button").click()
    page.get_by_label("Folder").set_input_files(make_folder(tmp_path))
    canvas = canvas_of(page)
    expect(canvas.locator("h1")).to_have_css("color", "rgb(255, 0, 0)")
    expect(canvas.locator("h1")).to_have_css("margin-left", "7px")
    expect(canvas.locator("h2")).to_have_css("color", "rgb(0, 0, 255)")
    assert str(canvas.locator("img").get_attribute("src")).startswith("data:image/png;base64,")
    assert (
        canvas.locator(".far").evaluate("element => getComputedStyle(element).backgroundImage").startswith('url("data:')
    )
    expect(page.locator(".site-button")).to_have_text("Boulangerie")
    page.get_by_label("Page", exact=True).select_option(label="contact")
    expect(canvas.locator("h1")).to_have_text("Café")


def test_a_person_adds_and_deletes_pages(console: ConsolePage) -> None:
    page = console.page
    page.get_by_role("button", name="Add a page").click()
    page.get_by_label("Name").fill("About us")
    page.get_by_role("button", name="Add", exact=True).click()
    chooser = page.get_by_label("Page", exact=True)
    expect(chooser.locator("option")).to_have_text(["index", "About us"])
    expect(canvas_of(page).locator("h1")).to_have_count(0)
    console.ask("Add a pricing section")
    expect(canvas_of(page).locator("h2").first).to_be_attached()
    expect(page.locator(".saved")).to_have_text("Saved in this browser")
    page.reload()
    expect(chooser.locator("option")).to_have_text(["index", "About us"])
    chooser.select_option(label="About us")
    expect(canvas_of(page).locator("h2").first).to_be_attached()
    page.get_by_role("button", name="Delete this page").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete", exact=True).click()
    expect(canvas_of(page).locator("h1")).to_have_text("A quiet place for good bread")
    expect(chooser).to_be_hidden()
    assert console.complaints == []


def test_an_exported_page_has_the_head_and_the_language_of_the_imported_one(console: ConsolePage) -> None:
    page = console.page
    import_file(page, "index.html", INDEX.encode())
    expect(canvas_of(page).locator("h1")).to_have_text("Bienvenue")
    exported = export_page(page)
    for kept in (
        'lang="fr"',
        'dir="ltr"',
        "<title>Boulangerie</title>",
        'name="description"',
        "https://fonts.example/css",
    ):
        assert kept in exported
    assert 'class="home"' in exported
    assert exported.count("<title>") == exported.count('charset="utf-8"') == exported.lower().count("<body") == 1


def test_a_page_in_an_old_encoding_keeps_its_letters(console: ConsolePage) -> None:
    import_file(console.page, "contact.html", CONTACT.encode("latin-1"))
    expect(canvas_of(console.page).locator("h1")).to_have_text("Café")


@pytest.mark.parametrize(
    ("name", "content", "refusal"),
    [
        ("huge.html", b"<p>" + b"x" * 5_100_000, "larger than"),
        ("picture.html", PIXEL + b"\0" * 10, "is no HTML file"),
    ],
)
def test_what_no_editor_can_hold_is_refused_in_words(
    console: ConsolePage, name: str, content: bytes, refusal: str
) -> None:
    import_file(console.page, name, content)
    expect(console.page.get_by_role("dialog").get_by_role("alert")).to_contain_text(refusal)
    expect(canvas_of(console.page).locator("h1")).to_have_count(1)


@pytest.mark.parametrize("html", ["", "just words", "<p>a</p><p>b", "<body></body>", "<!-- nothing -->"])
def test_odd_pages_are_shown_and_can_be_edited(console: ConsolePage, html: str) -> None:
    import_file(console.page, "odd.html", html.encode())
    expect(console.page.locator(".site-button")).to_have_text("odd")
    canvas_of(console.page).locator("body").wait_for(state="attached")
    console.ask("Add a pricing section")
    expect(canvas_of(console.page).locator("h2").first).to_be_attached()
    assert console.complaints == []


def test_a_page_of_three_thousand_elements_is_shown(console: ConsolePage) -> None:
    html = f"<title>Large</title><main>{'<div><p>Words</p></div>' * 1_500}</main>"
    import_file(console.page, "large.html", html.encode())
    expect(canvas_of(console.page).locator("p").first).to_have_text("Words")
    expect(canvas_of(console.page).locator("p")).to_have_count(1_500)


ESCAPES = (PAGES / "hostile.html").read_text()


def test_a_hostile_page_runs_nothing_leads_nowhere_and_is_told_nothing(console: ConsolePage) -> None:
    page = console.page
    read: list[str] = []
    page.on("response", lambda response: read.append(response.url) if _is_read_by_the_page(response) else None)
    import_file(page, "hostile.html", ESCAPES.encode())
    expect(canvas_of(page).get_by_role("heading", name="Hostile")).to_be_visible()
    page.wait_for_timeout(1_500)  # what runs by itself has run then
    page.reload()
    expect(canvas_of(page).get_by_role("heading", name="Hostile")).to_be_visible()
    page.wait_for_timeout(1_500)
    assert page.evaluate("window.stolen") is None
    assert page.url.startswith(f"{console.url}/console/")
    assert read == []
    assert [frame.url for frame in page.frames if frame.url.startswith(console.url) and frame != page.main_frame] == []
    exported = export_page(page)
    assert "Hostile" in exported


def _is_read_by_the_page(response: Response) -> bool:
    """Return whether the service has answered a request that no script has sent."""
    return "/admin/api/" in response.url and response.request.resource_type != "fetch" and response.ok
