"""A space of a tenant on empty tables, and people who write to it."""

import pytest

from fermata.aws.resources import Resources
from fermata.content.content_space import ContentSpace, SpaceKey
from fermata.content.documents.document import ContentAuthor
from fermata.content.model_store import create_space, put_model
from tests.unit.resource_fixtures import clock, resources, shared_resources

__all__ = ["clock", "resources", "shared_resources"]
SPACE = SpaceKey("bakery", "shop", "main")
ADA = ContentAuthor("ada")
HERO = {
    "id": "hero",
    "kind": "section",
    "fields": {"title": {"type": "string", "required": True, "max": 60}, "ctaLink": {"type": "object"}},
}
RECIPE = {
    "id": "recipe",
    "kind": "collection",
    "fields": {"title": {"type": "string", "required": True}, "code": {"type": "string", "unique": True}},
}


@pytest.fixture
def space(resources: Resources) -> SpaceKey:
    create_space(resources, SPACE, ContentSpace(title="Shop", locales=("en", "de")), ADA)
    put_model(resources, SPACE, HERO, ADA)
    put_model(resources, SPACE, RECIPE, ADA)
    return SPACE
