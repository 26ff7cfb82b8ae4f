"""Name the events that a webhook may be told about."""

from enum import StrEnum

CONTENT_EVENT_PREFIXES = ("content.", "forms.")


class WebhookEvent(StrEnum):
    """What a webhook may be told about."""

    TOOL_REQUEST = "toolRequest"
    APPROVAL_REQUEST = "approvalRequest"
    TURN_END = "turnEnd"
    DOCUMENT_CREATED = "content.documentCreated"
    DOCUMENT_CHANGED = "content.documentChanged"
    DOCUMENT_PUBLISHED = "content.documentPublished"
    DOCUMENT_UNPUBLISHED = "content.documentUnpublished"
    DOCUMENT_DELETED = "content.documentDeleted"
    MODEL_CHANGED = "content.modelChanged"
    CHANGE_SET_OPENED = "content.changeSetOpened"
    CHANGE_SET_MERGED = "content.changeSetMerged"
    CHANGE_SET_REJECTED = "content.changeSetRejected"
    SUBMISSION_RECEIVED = "forms.submissionReceived"
    SUBMISSION_DECIDED = "forms.submissionDecided"

    @property
    def is_of_content(self) -> bool:
        """Whether it tells what became of content or of what visitors have sent, and not of a turn."""
        return self.value.startswith(CONTENT_EVENT_PREFIXES)


TURN_EVENTS = tuple(event for event in WebhookEvent if not event.is_of_content)
"""What a webhook is told about that names no events. Events of content are told to those that name them."""
