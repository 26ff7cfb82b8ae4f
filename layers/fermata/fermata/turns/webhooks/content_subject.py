"""Name what an event of content is about: a version of a document, a step of a change set, or one of a submission.

    d.<site>.<environment>.<model>.<document>.<version>
    c.<site>.<environment>.<change set>.<version>
    s.<site>.<environment>.<submission>.<version>

No part has a dot. A subject names no tenant: that of its message counts.
"""

from enum import StrEnum
from typing import NamedTuple

from fermata.aws.resources import Resources
from fermata.content.change_sets.change_set import ChangeSet, change_set_from_item, change_set_sort_key
from fermata.content.content_space import SpaceKey, read_space
from fermata.content.documents.document import DocumentKey, DocumentVersion
from fermata.content.documents.read_document import read_versions_at_once
from fermata.content.forms.submission import Submission
from fermata.content.forms.submission_store import read_submissions
from fermata.domain.errors import NotFound

_SEPARATOR = "."


class ContentSubjectKind(StrEnum):
    """What a subject is, and how its name begins."""

    DOCUMENT = "d"
    CHANGE_SET = "c"
    SUBMISSION = "s"


class ContentSubject(NamedTuple):
    """What an event is about. Only a document's name has its model."""

    space: SpaceKey
    model: str
    id: str
    version: int
    kind: ContentSubjectKind = ContentSubjectKind.DOCUMENT

    def __str__(self) -> str:
        model = (self.model,) if self.kind is ContentSubjectKind.DOCUMENT else ()
        own = (self.kind.value, self.space.site, self.space.environment, *model)
        return _SEPARATOR.join((*own, self.id, str(self.version)))

    @classmethod
    def parse(cls, tenant: str, text: str) -> "ContentSubject":
        """Return the subject that a message names. Its tenant is that of the message."""
        prefix, site, environment, *names, version = text.split(_SEPARATOR)
        kind = ContentSubjectKind(prefix)
        model, name = names if kind is ContentSubjectKind.DOCUMENT else ("", *names)
        return cls(SpaceKey(tenant, site, environment), model, name, int(version), kind)


class ContentFacts(NamedTuple):
    """What is stored of a subject: a version with the one before it, a change set, or a submission."""

    at: str
    version: DocumentVersion | None = None
    before: DocumentVersion | None = None
    change_set: ChangeSet | None = None
    submission: Submission | None = None


def read_content_facts(resources: Resources, subject: ContentSubject) -> ContentFacts | None:
    """Return what is stored of a subject; None if it or its space was deleted, or is being erased.

    Args:
        resources: Of the process.
        subject: What an event is about.
    """
    try:
        read_space(resources, subject.space)
    except NotFound:
        return None
    match subject.kind:
        case ContentSubjectKind.DOCUMENT:
            return _read_versions(resources, subject)
        case ContentSubjectKind.CHANGE_SET:
            return _read_change_set(resources, subject)
        case ContentSubjectKind.SUBMISSION:
            return _read_submission(resources, subject)


def _read_versions(resources: Resources, subject: ContentSubject) -> ContentFacts | None:
    key = DocumentKey(subject.model, subject.id)
    found = read_versions_at_once(resources, subject.space, [(key, subject.version), (key, subject.version - 1)])
    version = found.get((key, subject.version))
    if version is None:
        return None
    return ContentFacts(version.at, version, found.get((key, subject.version - 1)))


def _read_change_set(resources: Resources, subject: ContentSubject) -> ContentFacts | None:
    table = resources.settings.content_table
    row = resources.tables.get_item(table, subject.space.pk, change_set_sort_key(subject.id))
    if row is None:
        return None
    change_set = change_set_from_item(row)
    is_opening = subject.version == 1
    return ContentFacts(change_set.created_at if is_opening else change_set.closed_at, change_set=change_set)


def _read_submission(resources: Resources, subject: ContentSubject) -> ContentFacts | None:
    """Return a submission as it is now. A decision that another one has followed is no fact any more."""
    for found in read_submissions(resources, subject.space, [subject.id]):
        if subject.version == 1:
            return ContentFacts(found.created_at, submission=found)
        if subject.version == found.version:
            return ContentFacts(found.decided_at or found.created_at, submission=found)
    return None
