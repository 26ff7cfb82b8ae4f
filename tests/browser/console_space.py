"""A site of the content store in the console, with fixtures for the tests of its pages."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from playwright.sync_api import Page

from fermata.aws.clock import new_id
from local.cloud import LocalCloud
from tests.browser.console_page import ConsolePage
from tests.waiting import BACKSTOP_SECONDS

RECIPE = {
    "kind": "collection",
    "i18n": True,
    "fields": {
        "title": {"type": "string", "required": True},
        "servings": {"type": "integer", "min": 1},
        "vegan": {"type": "boolean"},
        "steps": {"type": "array", "items": "string"},
        "course": {"type": "select", "options": ["starter", "main"]},
        "sources": {"type": "array", "items": {"type": "object", "fields": {"url": {"type": "url"}}}},
    },
}
HERO = {"kind": "section", "i18n": True, "fields": {"headline": {"type": "string"}, "dark": {"type": "boolean"}}}


class Space:
    """A site of its own with a model of recipes, changed by requests as another person's program would."""

    def __init__(self, client: httpx.Client) -> None:
        self.client = client
        self.name = f"site-{new_id().lower().replace('_', '-').strip('-')}-x"
        self.send("POST", "spaces", {"site": self.name, "locales": ["en", "de"]})
        self.send("PUT", f"{self.name}/main/models/recipe", RECIPE)
        self.send("PUT", f"{self.name}/main/models/hero", HERO)

    def send(self, method: str, path: str, body: Any = None) -> Any:
        answer = self.client.request(method, path, json=body)
        assert answer.is_success, answer.text
        return answer.json()

    def create(self, model: str, **document: Any) -> dict[str, Any]:
        created: dict[str, Any] = self.send("POST", f"{self.name}/main/documents/{model}", document)["document"]
        return created

    def change(self, document: dict[str, Any], **change: Any) -> None:
        self.send("PATCH", f"{self.name}/main/documents/{document['model']}/{document['id']}", change)

    def read(self, document: dict[str, Any]) -> dict[str, Any]:
        path = f"{self.name}/main/documents/{document['model']}/{document['id']}"
        stored: dict[str, Any] = self.send("GET", path)["document"]
        return stored


@pytest.fixture(scope="module")
def space(cloud: LocalCloud) -> Iterator[Space]:
    headers = {"Authorization": f"Bearer {cloud.token}"}
    with httpx.Client(
        base_url=f"{cloud.url}/admin/api/ai/content", headers=headers, timeout=BACKSTOP_SECONDS
    ) as client:
        yield Space(client)


def open_part(console: ConsolePage, space: Space, path: str) -> Page:
    console.open(f"content/{space.name}/main/{path}")
    return console.page
