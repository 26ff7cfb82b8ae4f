"""Sites read what is published with a token; previews expire; exports come back by an import that may be repeated."""

from contextlib import suppress
from hashlib import sha256
from typing import Any

import pytest

from fermata.aws.resources import Resources
from fermata.content.content_space import ContentSpace, SpaceKey
from fermata.content.documents.change_document import create_document, delete_document, update_document
from fermata.content.documents.document import ContentStatus, DocumentContent, DocumentKey
from fermata.content.documents.list_documents import list_documents
from fermata.content.documents.read_document import read_document
from fermata.content.media.asset_reference import iter_asset_references, replace_asset_references
from fermata.content.model_store import create_space
from fermata.content.publishing import export_space
from fermata.content.publishing.deliver_documents import (
    deliver_asset_of_token,
    deliver_document,
    deliver_list,
    to_delivered_view,
)
from fermata.content.publishing.delivery_token import (
    DeliveryGrant,
    DeliveryMode,
    issue_delivery_token,
    list_delivery_tokens,
    open_delivery_token,
    revoke_delivery_token,
)
from fermata.content.publishing.export_space import describe_exported_space, export_documents, export_html
from fermata.content.publishing.import_documents import import_content
from fermata.content.publishing.render_html import render_document_html
from fermata.domain.errors import InvalidRequest, NotFound
from tests.late_writes import WriteRecorder, repeat_single_writes
from tests.unit.content.conftest import ADA

ABOUT, DRAFT = DocumentKey("page", "about"), DocumentKey("page", "draft")


def add_page(resources: Resources, space: SpaceKey, slug: str, status: str = "published", **shared: Any) -> None:
    sections = [
        {"id": f"{slug}.s1", "model": "hero", "status": "published"},
        {"id": f"{slug}.s2", "model": "hero", "status": "unpublished"},
    ]
    texts = {f"{slug}.s1": {"title": "<b>Bread</b>"}, f"{slug}.s2": {"title": "Hidden"}}
    content = DocumentContent(
        slug=slug,
        title=slug.title(),
        status=ContentStatus(status),
        locales={"data": {"sections": sections, **shared}, "en": texts},
    )
    create_document(resources, space, "page", ADA, content, document_id=slug, section_models=["hero"])


@pytest.fixture
def pages(resources: Resources, space: SpaceKey) -> SpaceKey:
    add_page(resources, space, "about")
    add_page(resources, space, "draft", "draft")
    return space


def test_a_token_for_what_is_published_shows_no_draft_and_no_hidden_section(
    resources: Resources, pages: SpaceKey
) -> None:
    text, _ = issue_delivery_token(resources, pages, "ada", "published")
    grant = open_delivery_token(resources, text)
    view = to_delivered_view(deliver_document(resources, grant, ABOUT), str)
    assert [section["id"] for section in view["locales"]["data"]["sections"]] == ["about.s1"]
    assert view["locales"]["en"] == {"about.s1": {"title": "<b>Bread</b>"}}
    assert "user" not in view
    assert deliver_document(resources, grant, DocumentKey("page", "about"), by_slug=True).id == "about"
    for key in (DRAFT, DocumentKey("page", "gone"), DocumentKey("model", "hero"), DocumentKey("nothing", "about")):
        with pytest.raises(NotFound):
            deliver_document(resources, grant, key)
    versions, after = deliver_list(resources, grant, "page", limit=10)
    assert ([version.id for version in versions], after) == (["about"], "")


def test_what_is_taken_back_is_not_shown_any_more(resources: Resources, pages: SpaceKey) -> None:
    text, _ = issue_delivery_token(resources, pages, "ada", "published")
    update_document(
        resources, pages, ABOUT, ADA, lambda content: content.model_copy(update={"status": ContentStatus.DRAFT})
    )
    with pytest.raises(NotFound):
        deliver_document(resources, open_delivery_token(resources, text), ABOUT)


def test_a_preview_shows_one_draft_until_it_expires(resources: Resources, pages: SpaceKey) -> None:
    text, grant = issue_delivery_token(resources, pages, "ada", "preview", document=DRAFT, seconds=600)
    assert deliver_document(resources, open_delivery_token(resources, text), DRAFT).id == "draft"
    with pytest.raises(NotFound):
        deliver_document(resources, grant, ABOUT)
    with pytest.raises(NotFound, match="no lists"):
        deliver_list(resources, grant, "page", limit=10)
    resources.clock.sleep(600)
    with pytest.raises(NotFound, match="expired"):
        open_delivery_token(resources, text)
    assert list_delivery_tokens(resources, pages) == []


def test_a_token_shows_the_images_that_it_is_for_and_no_others(resources: Resources, space: SpaceKey) -> None:
    for name, status in (("seen", "published"), ("other", "published"), ("draft", "draft")):
        said = {"filename": name, "mediaType": "image/png", "sha256": sha256(name.encode()).hexdigest()}
        image = DocumentContent(title=name, status=ContentStatus(status)).with_fields("data", said)
        create_document(resources, space, "asset", ADA, image, document_id=name)
    add_page(resources, space, "about", meta={"image": "asset:seen"})
    add_page(resources, space, "draft", "draft", meta={"image": "asset:draft"})

    def list_shown(mode: DeliveryMode, document: DocumentKey | None = None) -> list[str]:
        text, _ = issue_delivery_token(resources, space, "ada", mode, document=document)
        return [name for name in ("seen", "other", "draft") if shows(open_delivery_token(resources, text), name)]

    def shows(grant: DeliveryGrant, name: str) -> bool:
        with suppress(NotFound):
            return deliver_asset_of_token(resources, grant, name).id == name
        return False

    assert list_shown("published") == ["seen", "other"]
    assert list_shown("preview") == ["seen", "other", "draft"]
    assert list_shown("preview", DRAFT) == ["draft"]
    assert list_shown("published", ABOUT) == ["seen"]
    assert list_shown("published", DRAFT) == []
    assert list_shown("preview", DocumentKey("asset", "other")) == ["other"]


def test_a_preview_always_expires_and_within_a_week(resources: Resources, pages: SpaceKey) -> None:
    assert issue_delivery_token(resources, pages, "ada", "preview")[1].expires > 0
    with pytest.raises(InvalidRequest, match="a week"):
        issue_delivery_token(resources, pages, "ada", "preview", seconds=604_801)


def test_a_token_whose_creation_lands_again_is_issued_once_and_stays_revoked(
    resources: Resources, pages: SpaceKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder = WriteRecorder(resources, monkeypatch)
    text, grant = issue_delivery_token(resources, pages, "ada", "published")
    revoke_delivery_token(resources, pages, grant.id)
    recorder.land_again()
    with pytest.raises(NotFound, match="revoked"):
        open_delivery_token(resources, text)
    assert list_delivery_tokens(resources, pages) == []
    repeat_single_writes(resources, monkeypatch)
    text, grant = issue_delivery_token(resources, pages, "ada", "published")
    assert open_delivery_token(resources, text) == grant
    revoke_delivery_token(resources, pages, grant.id)
    assert list_delivery_tokens(resources, pages) == []


def test_a_revoked_token_shows_nothing(resources: Resources, pages: SpaceKey) -> None:
    text, grant = issue_delivery_token(resources, pages, "ada", "published")
    kept, _ = issue_delivery_token(resources, pages, "ada", "published")
    revoke_delivery_token(resources, pages, grant.id)
    with pytest.raises(NotFound, match="revoked"):
        open_delivery_token(resources, text)
    assert open_delivery_token(resources, kept).mode == "published"
    for unknown in (grant.id, "", "k", grant.id[:4]):
        with pytest.raises(NotFound):
            revoke_delivery_token(resources, pages, unknown)


@pytest.mark.parametrize("text", ["", "fmd", "fmd.bakery.shop.main.short", "fmd.bakery.shop.main." + "x" * 32])
def test_what_is_no_token_shows_nothing(resources: Resources, pages: SpaceKey, text: str) -> None:
    with pytest.raises(NotFound):
        open_delivery_token(resources, text)


def test_a_token_of_one_space_does_not_open_another(resources: Resources, pages: SpaceKey) -> None:
    text, _ = issue_delivery_token(resources, pages, "ada", "published")
    create_space(resources, pages._replace(environment="staging"), ContentSpace(), ADA)
    with pytest.raises(NotFound):
        open_delivery_token(resources, text.replace(".main.", ".staging."))


def test_references_to_images_are_found_and_replaced() -> None:
    content = {"a": "asset:x1", "b": ["asset:x2", "assets:x3", {"c": "asset:x1"}], "d": "see asset:x1"}
    assert list(iter_asset_references(content)) == ["x1", "x2", "x1"]
    assert replace_asset_references(content, lambda one: f"/{one}")["b"] == ["/x2", "assets:x3", {"c": "/x1"}]


def export_all(resources: Resources, space: SpaceKey) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    part = export_documents(resources, space)
    found += part.items
    while part.cursor:
        part = export_documents(resources, space, part.cursor)
        found += part.items
    return found


def test_an_export_is_imported_into_another_space_and_again_without_a_change(
    resources: Resources, pages: SpaceKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(7):
        create_document(resources, pages, "recipe", ADA, DocumentContent(locales={"data": {"title": str(number)}}))
    monkeypatch.setattr(export_space, "EXPORTED_AT_ONCE", 3)
    head, documents = describe_exported_space(resources, pages), export_all(resources, pages)
    assert len(documents) == 9
    copy = pages._replace(environment="copy")
    create_space(resources, copy, ContentSpace(locales=("en", "de")), ADA)
    first = import_content(resources, copy, ADA, head["models"], documents)
    assert {item.outcome for item in first if item.key.model != "model"} == {"created"}
    again = import_content(resources, copy, ADA, head["models"], documents)
    assert [item for item in again if item.outcome != "unchanged"] == []
    assert export_all(resources, copy) == documents
    assert read_document(resources, copy, ABOUT).version == 1


def test_an_import_says_what_it_refuses_and_stores_the_rest(resources: Resources, space: SpaceKey) -> None:
    good = {"model": "recipe", "id": "rye", "locales": {"data": {"title": "Rye", "code": "r"}}}
    bad = [
        {"model": "recipe", "id": "no-title", "locales": {"data": {}}},
        {"model": "recipe", "id": "same-code", "locales": {"data": {"title": "Oats", "code": "r"}}},
        {"model": "nothing", "id": "x"},
        {"model": "model", "id": "hero"},
        {"model": "recipe", "id": "../x"},
    ]
    items = import_content(resources, space, ADA, [{"id": "!", "kind": "page"}], [good, *bad])
    assert [item.outcome for item in items] == ["refused", "created", *["refused"] * 5]
    assert all(item.error for item in items if item.outcome == "refused")
    changed = import_content(resources, space, ADA, [], [good | {"title": "Dark rye"}])
    assert [item.outcome for item in changed] == ["changed"]
    delete_document(resources, space, DocumentKey("recipe", "rye"), ADA)
    assert [item.outcome for item in import_content(resources, space, ADA, [], [good])] == ["created"]


def test_an_import_is_bounded(resources: Resources, space: SpaceKey) -> None:
    with pytest.raises(InvalidRequest, match="At most"):
        import_content(resources, space, ADA, [], [{"model": "recipe", "id": str(number)} for number in range(26)])
    assert list_documents(resources, space, "recipe").documents == ()


def test_a_site_is_exported_as_pages_whose_texts_run_nothing(resources: Resources, pages: SpaceKey) -> None:
    post = DocumentContent(
        slug="news",
        title="<script>alert(1)</script>",
        status=ContentStatus.PUBLISHED,
        locales={"data": {"featuredImage": "asset:x1"}, "de": {"body": "Erst\n\nDann"}},
    )
    create_document(resources, pages, "post", ADA, post)
    found = export_html(resources, pages)
    files = {item["path"]: item["html"] for item in [*found.items, *export_html(resources, pages, found.cursor).items]}
    assert set(files) == {"about.html", "post/news.html", "de/post/news.html"}
    news = files["de/post/news.html"]
    assert "<p>Erst</p><p>Dann</p>" in news
    assert "<script>" not in news
    assert 'src="/admin/api/ai/content/shop/main/assets/x1/files/large"' in news
    assert "&lt;b&gt;Bread&lt;/b&gt;" in files["about.html"]
    assert "Hidden" not in files["about.html"]


def test_a_link_that_was_stored_before_such_links_were_refused_is_only_its_text(
    resources: Resources, pages: SpaceKey
) -> None:
    post = DocumentContent(slug="news", title="News", status=ContentStatus.PUBLISHED)
    version = create_document(resources, pages, "post", ADA, post).version
    evil = {"href": "javascript:alert(1)", "label": "Click"}
    content = version.content.model_copy(update={"locales": {"de": {"link": evil}}}) if version.content else None
    html = render_document_html(version.model_copy(update={"content": content}), "de")
    assert "<span>Click</span>" in html
    assert "javascript:" not in html


@pytest.mark.parametrize("cursor", ["nothing", "page.!!", "."])
def test_a_cursor_of_an_export_that_is_none_is_refused(resources: Resources, pages: SpaceKey, cursor: str) -> None:
    with pytest.raises(InvalidRequest):
        export_documents(resources, pages, cursor)
