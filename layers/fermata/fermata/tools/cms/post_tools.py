"""List, read, create, change, publish, archive and delete posts, which are entries of a collection, for CMS tools."""

from collections.abc import Callable, Mapping
from typing import Any

from fermata.content.content_model import DEFINITION_LOCALE, ContentModel, ModelKind
from fermata.content.documents.check_publication import check_whole_publication
from fermata.content.documents.document import ContentStatus, DocumentContent, DocumentKey, DocumentVersion
from fermata.content.documents.list_documents import ListFilter
from fermata.content.model_store import list_content_models, read_model
from fermata.content.opened_space import OpenedSpace
from fermata.domain.errors import InvalidRequest, NotFound
from fermata.tools.cms.store_handler import choose_default_locale

MAX_LISTED_POSTS = 50
_SHARED_FACTS = ("author", "category", "featuredImage")
"""What a post has once, and not in each language; lists are filtered by the category."""
_NO_POSTS = frozenset({"asset"})


def get_posts(arguments: dict[str, Any], access: OpenedSpace) -> dict[str, Any]:
    """Return the newest state of a collection's posts; both status and category hold."""
    collection = _read_collection(access, arguments["collectionSlug"])
    status, category = arguments.get("status", "published"), arguments.get("category", "")
    only = ListFilter(None if status == "all" else ContentStatus(status), category)
    page = access.documents.list(collection.id, limit=MAX_LISTED_POSTS, only=only)
    versions = access.documents.read_listed(page.documents)
    locale = choose_default_locale(arguments, access)
    keys = [DocumentKey(head.model, head.id) for head in page.documents]
    posts = [_describe_post(versions[key], locale, collection) for key in keys if key in versions]
    filters = {"status": status, **({"category": category} if category else {})}
    return {
        "success": True, "collection": _describe_collection(collection), "posts": posts, "count": len(posts),
        "total": len(posts), "filters": filters, "hasMore": bool(page.after), "message": f"Found {len(posts)} posts",
    }  # fmt: skip


def get_post(arguments: dict[str, Any], access: OpenedSpace) -> dict[str, Any]:
    """Return a post with its content in a language."""
    version, model = _find_post(arguments["postSlug"], access)
    locale = choose_default_locale(arguments, access)
    fields = _list_fields(version, locale, model)
    content = {name: value for name, value in fields.items() if name not in (*_SHARED_FACTS, "excerpt")}
    post = _describe_post(version, locale, model) | {"content": content, "collection": _describe_collection(model)}
    return {"success": True, "post": post, "message": f"Post {post['title']!r}"}


def create_post(arguments: dict[str, Any], access: OpenedSpace) -> dict[str, Any]:
    """Create a post as a draft. A slug that another post of the collection has is a conflict."""
    collection = _read_collection(access, arguments["collectionSlug"])
    content = DocumentContent(slug=arguments["slug"], title=arguments["title"])
    given = {name: arguments[name] for name in (*_SHARED_FACTS, "excerpt") if name in arguments}
    content = _apply_updates(content, {**given, "content": arguments["content"]}, collection, arguments, access)
    written = access.documents.create(collection.id, content)
    return _answer(written.version, f"Created the draft {content.title!r}")


def update_post(arguments: dict[str, Any], access: OpenedSpace) -> dict[str, Any]:
    """Change a post. Members of its content that are not named stay; a new cover becomes the featured image, too."""
    version, collection = _find_post(arguments["postSlug"], access)

    def change(content: DocumentContent) -> DocumentContent:
        title = arguments["updates"].get("title") or content.title
        named = content.model_copy(update={"title": title})
        return _apply_updates(named, arguments["updates"], collection, arguments, access)

    return _update(version.key, access, change, "Updated {!r}")


def publish_post(arguments: dict[str, Any], access: OpenedSpace) -> dict[str, Any]:
    """Publish a post in all of its languages. The time of its first publication stays.

    In a project, who manages content publishes.
    """
    return _set_status(arguments, access, ContentStatus.PUBLISHED, "Published {!r}")


def archive_post(arguments: dict[str, Any], access: OpenedSpace) -> dict[str, Any]:
    """Archive a post, which is then published no more."""
    return _set_status(arguments, access, ContentStatus.ARCHIVED, "Archived {!r}")


def delete_post(arguments: dict[str, Any], access: OpenedSpace) -> dict[str, Any]:
    """Delete a post. Its versions stay."""
    if access.has_been_done():
        return {"success": True, "message": "Deleted the post. It can be restored from its versions."}
    version, _ = _find_post(arguments["postSlug"], access)
    access.documents.delete(version.key)
    return _answer(version, "Deleted {!r}. It can be restored from its versions")


def _set_status(arguments: dict[str, Any], access: OpenedSpace, status: ContentStatus, message: str) -> dict[str, Any]:
    """Give a post a status in all of its languages, whatever it has: a call says what is wanted (decision 0664)."""
    version, _ = _find_post(arguments["postSlug"], access)
    now = access.resources.clock.now_iso()

    def change(content: DocumentContent) -> DocumentContent:
        if status is ContentStatus.PUBLISHED and access.is_reviewed:
            check_whole_publication(access.resources, access.space, content)
        return content.with_whole_status(status).with_status(status, now)

    return _update(version.key, access, change, message)


def _update(
    key: DocumentKey, access: OpenedSpace, change: Callable[[DocumentContent], DocumentContent], message: str
) -> dict[str, Any]:
    return _answer(access.documents.update(key, change).version, message)


def _apply_updates(
    content: DocumentContent,
    updates: Mapping[str, Any],
    model: ContentModel,
    arguments: dict[str, Any],
    access: OpenedSpace,
) -> DocumentContent:
    facts = {name: updates[name] for name in _SHARED_FACTS if name in updates}
    body = dict(updates.get("content") or {})
    if isinstance(body.get("cover"), dict) and "featuredImage" not in updates:
        facts["featuredImage"] = body["cover"].get("url")
    texts = body | ({"excerpt": updates["excerpt"]} if "excerpt" in updates else {})
    locale = choose_default_locale(arguments, access) if model.i18n else DEFINITION_LOCALE
    changed = content.with_fields(DEFINITION_LOCALE, facts) if facts else content
    return changed.with_fields(locale, texts) if texts else changed


def _find_post(slug: str, access: OpenedSpace) -> tuple[DocumentVersion, ContentModel]:
    """Return the post with a slug, in whichever collection it is.

    Raises:
        NotFound: No collection has one.
        InvalidRequest: Several have.
    """
    slug = slug.strip("/")
    states = [state.model for state in list_content_models(access.resources, access.space)]
    collections = {model.id: model for model in states if _holds_posts(model)}
    owners = access.documents.find_owners(list(collections), slug)
    if not owners:
        raise NotFound(f"There is no post with the slug {slug[:64]!r}.")
    if len(owners) > 1:
        names = ", ".join(sorted(owner.model for owner in owners))
        raise InvalidRequest(
            f"Several collections have {slug!r}: {names}. Use the tools for entries, with the entry's id."
        )
    [key] = owners
    return access.documents.read(key), collections[key.model]


def _read_collection(access: OpenedSpace, slug: str) -> ContentModel:
    model = read_model(access.resources, access.space, slug).model
    if not _holds_posts(model):
        raise NotFound(f"There is no collection {slug[:64]!r}.")
    return model


def _holds_posts(model: ContentModel) -> bool:
    return model.kind in (ModelKind.COLLECTION, ModelKind.DOCUMENT) and model.id not in _NO_POSTS


def _describe_collection(model: ContentModel) -> dict[str, str]:
    return {"slug": model.id, "name": model.title or model.id}


def _list_fields(version: DocumentVersion, locale: str, model: ContentModel) -> dict[str, Any]:
    content = version.content
    assert content is not None, version.key
    return {**content.get_locale(DEFINITION_LOCALE), **(content.get_locale(locale) if model.i18n else {})}


def _describe_post(version: DocumentVersion, locale: str, model: ContentModel) -> dict[str, Any]:
    fields = _list_fields(version, locale, model)
    facts = {name: fields[name] for name in (*_SHARED_FACTS, "excerpt") if name in fields}
    return _name_post(version) | facts | {"createdAt": version.created_at}


def _name_post(version: DocumentVersion) -> dict[str, Any]:
    content = version.content
    assert content is not None, version.key
    published = {"publishedAt": content.published_at} if content.published_at else {}
    entry_id = f"{version.model}.{version.id}"
    named = {"id": entry_id, "slug": content.slug, "title": content.title, "status": content.status.value}
    return named | published


def _answer(version: DocumentVersion, message: str) -> dict[str, Any]:
    post = _name_post(version)
    text = message.format(post["title"])
    return {"success": True, "post": post | {"message": text}, "message": text}
