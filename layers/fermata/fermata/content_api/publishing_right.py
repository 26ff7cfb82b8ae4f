"""Check that the caller of a request may publish: in a project of the studio only who manages content does."""

from collections.abc import Collection, Mapping

from fermata.content.content_space import SpaceKey
from fermata.content.documents.check_publication import (
    MAY_NOT_PUBLISH,
    check_publication,
    draft_unpublished_locales,
    may_publish_freely,
)
from fermata.content.documents.document import ContentStatus, DocumentContent, DocumentKey
from fermata.content.documents.read_document import read_newest_version
from fermata.content.space_access import is_reviewed
from fermata.domain.errors import Forbidden
from fermata.wire.http.routing import RequestContext


def check_may_publish(context: RequestContext, space: SpaceKey, status: str | None, key: DocumentKey | None) -> None:
    """Check that the caller may give a document a status. What is published already stays so.

    Args:
        context: The request.
        space: The space.
        status: The status; None for none.
        key: The document; None for a new one.

    Raises:
        Forbidden: It would be published, and somebody else has to do that.
    """
    check_may_publish_all(context, space, [key] if status == ContentStatus.PUBLISHED else ())


def check_may_publish_all(context: RequestContext, space: SpaceKey, keys: Collection[DocumentKey | None]) -> None:
    """Check that the caller may publish documents. Raises as `check_may_publish`."""
    if keys and is_reviewed(context.caller):
        check_publication(context.resources, space, keys)


def check_may_publish_locales(
    context: RequestContext, space: SpaceKey, statuses: Mapping[str, str] | None, key: DocumentKey | None
) -> None:
    """Check that the caller may give languages of a document their statuses. What is published already stays so.

    Args:
        context: The request.
        space: The space.
        statuses: The statuses by locale.
        key: The document; None for a new one.

    Raises:
        Forbidden: A language would be published, and somebody else has to do that.
    """
    wanted = [locale for locale, status in (statuses or {}).items() if status == ContentStatus.PUBLISHED]
    if not wanted or not is_reviewed(context.caller) or may_publish_freely(context.resources, space):
        return
    version = read_newest_version(context.resources, space, key) if key else None
    content = version.content if version else None
    if content is None or any(not content.is_published_in(locale) for locale in wanted):
        raise Forbidden(MAY_NOT_PUBLISH)


def draft_further_locales(
    context: RequestContext, space: SpaceKey, before: DocumentContent, after: DocumentContent, named: Collection[str]
) -> DocumentContent:
    """Return a document as it is stored: what it says in a further language is a draft for who may not publish.

    Args:
        context: The request.
        space: The space.
        before: What it said before.
        after: What it is to say.
        named: Languages that get a status by themselves.
    """
    if not is_reviewed(context.caller):
        return after
    return draft_unpublished_locales(context.resources, space, before, after, named)
