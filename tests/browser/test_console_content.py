"""The content workspace of the console, over the real service."""

import re

from playwright.sync_api import Route, expect

from tests.browser.console_page import ConsolePage
from tests.browser.console_space import Space, open_part, space

__all__ = ["space"]

STEPS = ["Mix.", "Bake."]


def test_a_document_is_written_in_a_form_of_its_models_fields(console: ConsolePage, space: Space) -> None:
    page = open_part(console, space, "documents/recipe")
    page.get_by_role("link", name="New document").click()
    page.get_by_role("textbox", name="Title", exact=True).fill("Rye bread")
    english = page.locator("details.fold", has_text="en").first
    english.get_by_label("title · required").fill("Rye bread")
    english.get_by_label("servings").fill("4")
    english.get_by_label("vegan").check()
    english.get_by_label("steps").fill("Mix.\n\nBake.")
    english.get_by_label("course").select_option("main")
    english.get_by_label("sources").fill("{")
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".form-problem-place")).to_contain_text("sources: this is not valid JSON.")
    english.get_by_label("sources").fill('[{"url": "https://rye.example"}]')
    console.expect_accessible()
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("row", name="1 created")).to_be_visible()
    (stored,) = space.send("GET", f"{space.name}/main/documents/recipe")["documents"]
    assert space.read(stored)["locales"] == {
        "en": {
            "title": "Rye bread",
            "servings": 4,
            "vegan": True,
            "steps": STEPS,
            "course": "main",
            "sources": [{"url": "https://rye.example"}],
        }
    }
    assert console.complaints == []


def test_what_breaks_the_rules_of_a_model_is_told_with_the_field(console: ConsolePage, space: Space) -> None:
    recipe = space.create("recipe", title="Soup", locales={"en": {"title": "Soup", "servings": 2}})
    page = open_part(console, space, f"documents/recipe/{recipe['id']}")
    page.get_by_label("servings").first.fill("0")
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".problems")).to_contain_text("servings")
    assert space.read(recipe)["version"] == 1


def test_what_somebody_else_changes_shows_by_itself(console: ConsolePage, space: Space) -> None:
    recipe = space.create("recipe", title="Cake", locales={"en": {"title": "Cake"}})
    page = open_part(console, space, "documents/recipe")
    expect(page.get_by_role("link", name="Cake")).to_be_visible()
    space.change(recipe, title="Carrot cake")
    expect(page.get_by_role("link", name="Carrot cake")).to_be_visible()


def test_typed_changes_are_kept_when_somebody_else_has_saved(console: ConsolePage, space: Space) -> None:
    recipe = space.create("recipe", title="Pie", locales={"en": {"title": "Pie"}})
    page = open_part(console, space, f"documents/recipe/{recipe['id']}")
    page.get_by_label("title · required").first.fill("Apple pie")
    space.change(recipe, locales={"en": {"title": "Pear pie"}})
    expect(page.get_by_role("alert")).to_contain_text("Somebody has changed this document meanwhile.")
    expect(page.get_by_label("title · required").first).to_have_value("Apple pie")
    page.get_by_role("button", name="Load the newest version").click()
    expect(page.get_by_label("title · required").first).to_have_value("Pear pie")


def test_a_version_is_compared_and_restored_also_after_a_deletion(console: ConsolePage, space: Space) -> None:
    recipe = space.create("recipe", title="Tart", locales={"en": {"title": "Tart"}})
    space.change(recipe, locales={"en": {"title": "Plum tart"}})
    page = open_part(console, space, f"documents/recipe/{recipe['id']}")
    page.get_by_role("button", name="Compare 2").click()
    expect(page.locator(".differences")).to_contain_text("title en")
    expect(page.locator(".differences ins")).to_have_text("Plum tart")
    console.expect_accessible()
    page.get_by_role("button", name="Delete", exact=True).click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.get_by_text("This document was deleted.")).to_be_visible()
    page.get_by_role("button", name="Restore 1").click()
    expect(page.get_by_label("title · required").first).to_have_value("Tart")
    assert space.read(recipe)["version"] == 4


def test_the_sections_of_a_page_are_ordered_and_written(console: ConsolePage, space: Space) -> None:
    page_document = space.create("page", id="home", slug="home", title="Home")
    page = open_part(console, space, "documents/page/home")
    for _ in range(2):
        page.get_by_role("button", name="Add", exact=True).click()
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".form-problem-place")).to_have_text("")
    expect(page.locator(".section-fields")).to_have_count(4)  # two in each language
    headline = page.locator("details.fold", has_text="en").last.get_by_label("headline")
    headline.first.fill("Welcome")
    page.get_by_role("button", name="Move down").first.click()
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("row", name="3 changed")).to_be_visible()
    stored = space.read(page_document)["locales"]
    assert stored["en"] == {stored["data"]["sections"][1]["id"]: {"headline": "Welcome"}}
    assert console.complaints == []


def test_a_model_is_created_changed_and_deleted(console: ConsolePage, space: Space) -> None:
    page = open_part(console, space, "models")
    console.expect_accessible()
    page.get_by_role("button", name="New model").click()
    dialog = page.get_by_role("dialog", name="New model")
    dialog.locator("input[name=id]").fill("recipe")
    dialog.get_by_role("button", name="Add").click()
    expect(dialog.get_by_role("alert")).to_have_text("There is a model with this name already.")
    dialog.locator("input[name=id]").fill("author")
    dialog.get_by_role("button", name="Add").click()
    page.get_by_role("button", name="Add a field").click()
    dialog = page.get_by_role("dialog", name="Add a field")
    expect(dialog.locator("textarea[name=options]")).to_be_hidden()
    dialog.locator("select[name=type]").select_option("select")
    dialog.locator("input[name=name]").fill("mood")
    dialog.get_by_role("button", name="Add").click()
    expect(dialog.get_by_role("alert")).to_have_text("Enter at least one choice.")
    dialog.locator("textarea[name=options]").fill("glad\ncalm")
    console.expect_accessible()
    page.keyboard.press("Enter")  # a line more in the choices
    dialog.get_by_role("button", name="Add").click()
    expect(page.get_by_role("button", name="Change mood")).to_be_focused()
    with page.expect_response(lambda response: response.request.method == "PUT"):  # creating it was announced, too
        page.get_by_role("button", name="Save the model").click()
    expect(page.locator("#announcements")).to_contain_text("The model author was saved.")
    stored = space.send("GET", f"{space.name}/main/models/author")["model"]
    assert stored["fields"]["mood"]["options"] == ["glad", "calm"]
    space.create("author", locales={"data": {"mood": "glad"}})
    console.open(f"content/{space.name}/main/models/author")
    page.get_by_role("button", name="Remove mood").click()
    page.get_by_role("button", name="Save the model").click()
    dialog = page.get_by_role("dialog", name="Save all the same?")
    expect(dialog).to_contain_text("mood is removed.")
    console.expect_accessible()
    dialog.get_by_role("button", name="Save all the same").click()
    expect(page.locator("form[aria-busy]")).to_have_count(0)
    expect(page.get_by_text("No fields yet.")).to_be_visible()
    page.get_by_text("As JSON", exact=True).click()
    page.get_by_role("textbox", name="Definition").fill('{"kind": "collection", "fields": {"name": {"type": "poem"}}}')
    page.get_by_role("button", name="Save the model").click()
    expect(page.get_by_role("alert")).to_contain_text("The model is not valid")
    (author,) = space.send("GET", f"{space.name}/main/documents/author")["documents"]
    space.send("DELETE", f"{space.name}/main/documents/author/{author['id']}")
    page.get_by_role("button", name="Delete", exact=True).click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.get_by_role("link", name="recipe")).to_be_visible()
    expect(page.get_by_role("link", name="author")).to_have_count(0)


def test_a_form_is_sent_once_and_takes_no_changes_until_it_is_answered(console: ConsolePage, space: Space) -> None:
    page = open_part(console, space, "models/hero")
    held: list[Route] = []
    page.route(
        "**/models/hero**", lambda route: held.append(route) if route.request.method == "PUT" else route.fallback()
    )
    title, save = page.get_by_role("textbox", name="Title"), page.get_by_role("button", name="Save the model")
    title.fill("Hero")
    with page.expect_request(lambda request: request.method == "PUT"):
        title.press("Enter")
    page.evaluate(
        "const form = document.querySelector('form.fields'); form.requestSubmit(); form.querySelector('input').focus()"
    )
    page.keyboard.type(" at work")
    expect(title).to_have_value("Hero")
    for route in held:
        route.fulfill(status=400, json={"error": "Please try again."})
    expect(page.get_by_role("alert")).to_contain_text("Please try again.")
    expect(title).to_be_focused()
    page.unroute("**/models/hero**")
    page.keyboard.type(" of the day")
    save.click()
    expect(page.get_by_role("heading", name="Hero of the day")).to_be_visible()
    assert len(held) == 1


def test_a_dialog_that_is_closed_while_it_is_sent_ends_as_its_request_does(console: ConsolePage, space: Space) -> None:
    page = open_part(console, space, "models/hero")
    held: list[Route] = []
    page.route(
        "**/models/hero**", lambda route: held.append(route) if route.request.method == "DELETE" else route.fallback()
    )

    def send_and_close() -> Route:
        page.get_by_role("button", name="Delete", exact=True).click()
        with page.expect_request(lambda request: request.method == "DELETE"):
            page.get_by_role("dialog").get_by_role("button", name="Delete").click()
        page.keyboard.press("Escape")
        expect(page.get_by_role("dialog")).to_have_count(0)
        return held.pop()

    send_and_close().fulfill(status=409, json={"error": "It has entries."})
    expect(page.locator("#announcements")).to_have_text("It has entries.")
    send_and_close().fulfill(json={"ok": True})
    expect(page.locator("#announcements")).to_contain_text("hero")
    expect(page).to_have_url(re.compile("/models$"))


def test_a_change_set_shows_what_it_changes_and_whose_values_count_is_asked(console: ConsolePage, space: Space) -> None:
    recipe = space.create("recipe", title="Stew", locales={"en": {"title": "Stew"}})
    sets = f"{space.name}/main/change-sets"
    change_set = space.send("POST", sets, {"title": "Winter menu"})["changeSet"]["id"]
    ours = {"locales": {"en": {"title": "Winter stew"}}}
    space.send("PATCH", f"{sets}/{change_set}/documents/recipe/{recipe['id']}", ours)
    page = open_part(console, space, f"documents/recipe/{recipe['id']}")
    review = {"error": "Make yours in a change set.", "code": "reviewRequired"}
    page.route(
        f"**/main/documents/recipe/{recipe['id']}",
        lambda route: route.fulfill(status=403, json=review) if route.request.method == "PATCH" else route.fallback(),
    )
    page.get_by_label("servings").first.fill("4")
    page.get_by_role("button", name="Save").click()
    link = page.locator(".form-problem-place").get_by_role("link", name="Winter menu")
    expect(link).to_have_attribute("href", f"#/content/{space.name}/main/change-sets/{change_set}")
    expect(page.get_by_label("title · required").first).to_have_value("Winter stew")
    space.change(recipe, locales={"en": {"title": "Summer stew"}})
    page = open_part(console, space, "change-sets")
    page.get_by_role("link", name="Winter menu").click()
    expect(page.locator(".differences del")).to_have_text("Stew")
    console.expect_accessible()
    page.get_by_role("button", name="Merge", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("Summer stew")
    page.get_by_role("button", name="Merge, and keep what is here").click()
    expect(page.get_by_text("merged", exact=True)).to_be_visible()
    assert space.read(recipe)["locales"]["en"] == {"title": "Winter stew", "servings": 4}


def test_what_the_assistant_creates_shows_at_once(console: ConsolePage, space: Space) -> None:
    page = open_part(console, space, "documents/page")
    console.ask("Create a page “Bakery hours” with a hero section")
    page.get_by_role("link", name="Bakery hours").click()
    expect(page.get_by_role("link", name="assistant of you")).to_be_visible()
    expect(page.locator(".section-order li")).to_contain_text("hero")
    expect(page.locator("fermata-panel")).to_contain_text("Created page")
    assert console.complaints == []
