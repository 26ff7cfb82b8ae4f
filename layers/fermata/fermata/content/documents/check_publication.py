"""Check that documents may be published by somebody who does not manage content (decision 0630)."""

from collections.abc import Collection

from fermata.aws.resources import Resources
from fermata.content.content_model import DEFINITION_LOCALE
from fermata.content.content_space import SpaceKey
from fermata.content.documents.document import ContentStatus, DocumentContent, DocumentKey
from fermata.content.documents.read_document import (
    PROJECT_KEY,
    WriteBasis,
    read_newest_version,
    read_write_basis,
    waits_for_review,
)
from fermata.content.documents.review_workflow import has_reviews
from fermata.domain.errors import Forbidden

MAY_NOT_PUBLISH = (
    "Forbidden: in a project of the studio, who has ai.content.manage publishes. Save a draft, and ask one of them."
)


def check_publication(resources: Resources, space: SpaceKey, keys: Collection[DocumentKey | None]) -> None:
    """Check that documents may be published by who does not manage content. What is published already may stay so.

    Args:
        resources: Of the process.
        space: The space.
        keys: The documents; None for one that is new and has no id yet.

    Raises:
        Forbidden: One of them would be published, and somebody else has to do that.
    """
    basis = read_write_basis(resources, space, [], heads=[key for key in keys if key is not None])
    if _is_free_to_publish(resources, space, basis):
        return
    for key in keys:
        head = basis.heads.get(key) if key is not None else None
        if head is None or head.get("status") != ContentStatus.PUBLISHED:
            raise Forbidden(MAY_NOT_PUBLISH)


def check_whole_publication(resources: Resources, space: SpaceKey, content: DocumentContent) -> None:
    """Check that all that a document says may be published by who does not manage content.

    Args:
        resources: Of the process.
        space: The space.
        content: What the document says before.

    Raises:
        Forbidden: A language would be published, and somebody else has to do that.
    """
    languages = content.list_spoken_locales()
    is_published = content.status is ContentStatus.PUBLISHED and all(map(content.is_published_in, languages))
    if not is_published and not may_publish_freely(resources, space):
        raise Forbidden(MAY_NOT_PUBLISH)


def may_publish_freely(resources: Resources, space: SpaceKey) -> bool:
    """Return whether somebody who does not manage content may publish what was not published before."""
    return _is_free_to_publish(resources, space, read_write_basis(resources, space, []))


def draft_unpublished_locales(
    resources: Resources,
    space: SpaceKey,
    before: DocumentContent,
    after: DocumentContent,
    named: Collection[str] = (),
) -> DocumentContent:
    """Return a document as somebody stores it who does not manage content: what a further language says is a draft.

    Args:
        resources: Of the process.
        space: The space.
        before: What it said before.
        after: What it is to say.
        named: Languages that get a status by themselves.
    """
    further = [locale for locale in after.list_further_locales(before) if locale not in named]
    if not further or after.status is not ContentStatus.PUBLISHED or may_publish_freely(resources, space):
        return after
    for locale in further:
        after = after.with_locale_status(locale, ContentStatus.DRAFT)
    return after


def _is_free_to_publish(resources: Resources, space: SpaceKey, basis: WriteBasis) -> bool:
    """Return whether whoever writes publishes: the space is no project, or saving publishes, or a reviewer decides."""
    if basis.project is None or waits_for_review(resources, space, basis) or not has_reviews(resources, space.tenant):
        return True
    project = read_newest_version(resources, space, PROJECT_KEY)
    settings = project.content.get_locale(DEFINITION_LOCALE) if project and project.content else {}
    config = settings.get("config")
    return isinstance(config, dict) and config.get("autoPublish") is True
