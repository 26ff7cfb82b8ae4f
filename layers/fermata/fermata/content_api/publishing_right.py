"""Check that a caller may publish: in a project of the studio only who manages content does (decision 0630)."""

from fermata.content.content_model import DEFINITION_LOCALE
from fermata.content.content_space import SpaceKey
from fermata.content.documents.document import ContentStatus, DocumentKey, DocumentVersion
from fermata.content.documents.read_document import (
    PROJECT_KEY,
    read_newest_version,
    read_write_basis,
    waits_for_review,
)
from fermata.content.documents.review_workflow import has_reviews
from fermata.content.space_access import is_reviewed
from fermata.domain.errors import Forbidden
from fermata.wire.http.routing import RequestContext

MAY_NOT_PUBLISH = (
    "Forbidden: in a project of the studio, who has ai.content.manage publishes. Save a draft, and ask one of them."
)


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
    if status != ContentStatus.PUBLISHED or not is_reviewed(context.caller) or _is_free_to_publish(context, space):
        return
    if key is None or not _is_published(read_newest_version(context.resources, space, key)):
        raise Forbidden(MAY_NOT_PUBLISH)


def _is_free_to_publish(context: RequestContext, space: SpaceKey) -> bool:
    """Return whether whoever writes publishes: the space is no project, or saving publishes, or a reviewer decides."""
    resources = context.resources
    basis = read_write_basis(resources, space, [])
    if basis.project is None or waits_for_review(resources, space, basis) or not has_reviews(resources, space.tenant):
        return True
    project = read_newest_version(resources, space, PROJECT_KEY)
    settings = project.content.get_locale(DEFINITION_LOCALE) if project and project.content else {}
    config = settings.get("config")
    return isinstance(config, dict) and config.get("autoPublish") is True


def _is_published(version: DocumentVersion | None) -> bool:
    return bool(version and version.content and version.content.status is ContentStatus.PUBLISHED)
