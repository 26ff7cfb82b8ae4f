"""A site reads the languages of a document that are published, and nothing of the others, in whatever way they came."""

from typing import Any

import pytest

from fermata.aws.resources import Resources
from fermata.content.content_space import SpaceKey
from fermata.content.documents.change_document import create_document, update_document
from fermata.content.documents.document import ContentStatus, DocumentContent, DocumentKey
from fermata.content.documents.read_document import read_document
from fermata.content.model_store import put_model
from fermata.content.publishing.deliver_documents import deliver_asset_of_token, deliver_document, deliver_list
from fermata.content.publishing.delivery_token import DeliveryGrant, DeliveryMode, issue_delivery_token
from fermata.content.publishing.export_space import export_documents, export_html
from fermata.content.publishing.import_documents import import_content
from fermata.content.publishing.published_locales import keep_published_locales
from fermata.content_api.document_requests import apply_change
from fermata.domain.errors import InvalidRequest, NotFound
from fermata.wire.bodies.content_requests import DocumentChange
from tests.unit.content.conftest import ADA

NEWS = DocumentKey("post", "news")
PUBLISHED = DocumentContent(
    slug="news",
    title="Bread",
    status=ContentStatus.PUBLISHED,
    locales={
        "data": {"category": "bakery"},
        "en": {"excerpt": "Bread"},
        "de": {"excerpt": "Geheim", "featuredImage": "asset:secret"},
    },
)


@pytest.fixture
def half_published(resources: Resources, space: SpaceKey) -> SpaceKey:
    """A space with a post that is published in English, and a draft in German with an image of its own."""
    said = {"filename": "a.png", "mediaType": "image/png", "sha256": "a" * 64}
    image = DocumentContent(title="a", status=ContentStatus.PUBLISHED).with_fields("data", said)
    create_document(resources, space, "asset", ADA, image, document_id="secret")
    content = PUBLISHED.with_locale_status("de", ContentStatus.DRAFT)
    create_document(resources, space, "post", ADA, content, document_id="news")
    return space


def grant(resources: Resources, space: SpaceKey, mode: DeliveryMode = "published", **of: Any) -> DeliveryGrant:
    return issue_delivery_token(resources, space, "ada", mode, **of)[1]


def list_delivered(resources: Resources, space: SpaceKey, mode: DeliveryMode = "published") -> list[set[str]]:
    versions, _ = deliver_list(resources, grant(resources, space, mode), "post", limit=5)
    return [set(one.content.locales) for one in versions if one.content]


def test_a_draft_in_a_further_language_is_read_by_no_door_of_a_site(
    resources: Resources, half_published: SpaceKey
) -> None:
    shown = deliver_document(resources, grant(resources, half_published), NEWS).content
    assert shown is not None
    assert set(shown.locales) == {"data", "en"}
    by_slug = deliver_document(resources, grant(resources, half_published), NEWS, by_slug=True)
    assert "Geheim" not in by_slug.model_dump_json()
    assert list_delivered(resources, half_published) == [{"data", "en"}]
    assert list_delivered(resources, half_published, "preview") == [{"data", "en", "de"}]
    with pytest.raises(NotFound):
        deliver_asset_of_token(resources, grant(resources, half_published, document=NEWS), "secret")
    found = export_html(resources, half_published, "post").items
    assert [one["path"] for one in found] == ["post/news.html"]


def test_a_language_is_read_when_it_is_published_and_no_more_when_it_is_withdrawn(
    resources: Resources, half_published: SpaceKey
) -> None:
    def set_status(**statuses: str) -> None:
        update_document(resources, half_published, NEWS, ADA, lambda content: content.with_statuses(None, statuses))

    set_status(de="published")
    assert list_delivered(resources, half_published) == [{"data", "en", "de"}]
    set_status(en="archived")
    assert list_delivered(resources, half_published) == [{"data", "de"}]
    set_status(de="draft")
    assert list_delivered(resources, half_published) == []


def test_a_title_says_nothing_of_a_language_that_is_hidden() -> None:
    hidden = PUBLISHED.with_locale_status("en", ContentStatus.DRAFT)
    shown = keep_published_locales(hidden)
    assert shown is not None
    assert shown.title == "Geheim"
    own = keep_published_locales(hidden.model_copy(update={"title": "A name of its own"}))
    assert own is not None
    assert own.title == "A name of its own"


def test_another_status_is_that_of_all_languages_and_the_same_one_changes_none() -> None:
    half = PUBLISHED.with_locale_status("de", ContentStatus.DRAFT)
    assert half.with_statuses("published", {}) == half, "a client that sends what it has read"
    again = half.with_statuses("draft", {}).with_statuses("published", {})
    assert {again.get_status(locale).value for locale in again.locales} == {"published"}
    with pytest.raises(InvalidRequest, match="says nothing"):
        half.with_statuses(None, {"fr": "published"})


def test_an_export_keeps_which_languages_are_drafts(resources: Resources, half_published: SpaceKey) -> None:
    put_model(resources, half_published, {"id": "x", "kind": "collection"}, ADA)
    [exported] = export_documents(resources, half_published, "post").items
    assert exported["statuses"] == {"de": "draft"}
    copy = exported | {"id": "copy", "slug": "copy"}
    assert [one.outcome for one in import_content(resources, half_published, ADA, [], [copy, copy])] == [
        "created", "unchanged",
    ]  # fmt: skip
    content = read_document(resources, half_published, DocumentKey("post", "copy")).content
    assert content is not None
    assert (content.get_status("en").value, content.get_status("de").value) == ("published", "draft")


def test_a_language_without_a_word_publishes_nothing() -> None:
    content = DocumentContent(title="Geheim", status=ContentStatus.PUBLISHED, locales=PUBLISHED.locales | {"en": {}})
    assert keep_published_locales(content.with_locale_status("de", ContentStatus.DRAFT)) is None


def test_a_document_is_published_as_long_as_one_of_its_languages_is() -> None:
    half = PUBLISHED.with_locale_status("de", ContentStatus.DRAFT)
    assert half.with_settled_status() == half
    gone = apply_change(half, DocumentChange(locales={"en": {"excerpt": None}}, status="published"))
    assert (gone.status, gone.get_status("de")) == (ContentStatus.DRAFT, ContentStatus.DRAFT)
    archived = half.with_locale_status("en", ContentStatus.ARCHIVED)
    assert (archived.status, archived.get_status("de")) == (ContentStatus.ARCHIVED, ContentStatus.DRAFT)
    shared = DocumentContent(status=ContentStatus.PUBLISHED, locales={"data": {"category": "bakery"}})
    assert shared.with_settled_status() == shared, "what is not translated"


def test_an_import_that_takes_the_published_language_away_leaves_a_draft(
    resources: Resources, half_published: SpaceKey
) -> None:
    said = {"model": "post", "id": "news", "status": "published", "locales": {"de": {"excerpt": "Geheim"}}}
    assert [one.outcome for one in import_content(resources, half_published, ADA, [], [said])] == ["changed"]
    content = read_document(resources, half_published, NEWS).content
    assert content is not None
    assert content.status is ContentStatus.DRAFT
