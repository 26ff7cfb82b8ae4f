"""Check that the caller of a request may publish: in a project of the studio only who manages content does."""

from collections.abc import Collection

from fermata.content.content_space import SpaceKey
from fermata.content.documents.check_publication import check_publication
from fermata.content.documents.document import ContentStatus, DocumentKey
from fermata.content.space_access import is_reviewed
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
