"""Make a submission an entry of its model, a draft, and mark it approved in the same transaction."""

import hashlib
from collections.abc import Sequence

from fermata.aws.dynamodb_items_and_writes import Write
from fermata.aws.resources import Resources
from fermata.content.content_model import DEFINITION_LOCALE, ContentModel
from fermata.content.content_space import SpaceKey, read_space
from fermata.content.documents.change_document import ChangeOptions, change_document
from fermata.content.documents.document import ContentAuthor, ContentStatus, DocumentContent, DocumentKey
from fermata.content.files.entry_meta import derive_title
from fermata.content.forms.submission import Submission
from fermata.content.forms.submission_store import build_decision, read_submission
from fermata.content.model_store import read_model
from fermata.domain.errors import Conflict


def make_entry_key(space: SpaceKey, submission: Submission) -> DocumentKey:
    """Return the key of the entry that a submission becomes, the same whenever it is asked for."""
    digest = hashlib.sha256(f"{space.pk} {submission.id}".encode()).hexdigest()
    return DocumentKey(submission.model, digest[:12])


def build_entry(submission: Submission, model: ContentModel, locales: Sequence[str]) -> DocumentContent:
    """Return what the entry of a submission says: in the language of its visitor, if the model is translated.

    It does not name who has approved it. Its version and the submission do, where an erasure finds the name.

    Args:
        submission: The submission.
        model: Its model.
        locales: Those of the space, the default one first.
    """
    locale = submission.locale if submission.locale in locales else locales[0]
    place = locale if model.i18n else DEFINITION_LOCALE
    content = DocumentContent(status=ContentStatus.DRAFT).with_fields(place, dict(submission.data))
    content = content.model_copy(update={"meta": {place: {"source": "human"}}})
    return content.model_copy(update={"title": derive_title(model, content, locales[0])[:500]})


def approve_submission(
    resources: Resources, space: SpaceKey, submission: Submission, author: ContentAuthor
) -> Submission:
    """Make a submission an entry, once however often it is asked for, and return it as it is then.

    Args:
        resources: Of the process.
        space: The space.
        submission: As it was read.
        author: Who approves it.

    Raises:
        NotFound: Its model is gone.
        ContentRefused: It breaks the rules that its model has now. It stays as it is.
        Conflict: A unique value is another entry's, or somebody else decides at the same moment.
    """
    if submission.entry_id:
        return submission
    locales = read_space(resources, space).locales
    content = build_entry(submission, read_model(resources, space, submission.model).model, locales)
    key = make_entry_key(space, submission)

    def decide_too() -> list[Write]:
        now = read_submission(resources, space, submission.id)
        if now.version != submission.version:
            raise Conflict("Somebody else has just decided about this submission. Look at it again.")
        return build_decision(resources, space, now, "approved", author.user, key.id)[1]

    options = ChangeOptions(0, f"submission/{submission.id}", action="create", build_beside=decide_too)
    change_document(resources, space, key, author, lambda *_: content, options)
    return read_submission(resources, space, submission.id)
