"""Say which events a change of content is, and what a webhook is told about one.

A webhook is told what has changed, and not what it says: whoever may read it asks for it.
"""

from typing import Any

from fermata.content.content_model import META_MODEL
from fermata.content.documents.document import ContentStatus, DocumentVersion
from fermata.content.forms.submission import Submission
from fermata.turns.webhooks.content_subject import ContentFacts, ContentSubject
from fermata.webhooks.webhook_event import WebhookEvent

_CLOSINGS = {"merged": WebhookEvent.CHANGE_SET_MERGED, "discarded": WebhookEvent.CHANGE_SET_REJECTED}


def list_content_events(subject: ContentSubject, facts: ContentFacts) -> tuple[WebhookEvent, ...]:
    """Return the events that a change is: one of what was done, and one more where readers of the site see it.

    Args:
        subject: What has changed.
        facts: What is stored of it.
    """
    if facts.version is not None:
        return _list_document_events(facts.version, facts.before)
    if facts.submission is not None:
        is_new = subject.version == 1
        return (WebhookEvent.SUBMISSION_RECEIVED if is_new else WebhookEvent.SUBMISSION_DECIDED,)
    if subject.version == 1:
        return (WebhookEvent.CHANGE_SET_OPENED,)
    status = facts.change_set.status if facts.change_set else ""
    return (_CLOSINGS[status],) if status in _CLOSINGS else ()


def _list_document_events(version: DocumentVersion, before: DocumentVersion | None) -> tuple[WebhookEvent, ...]:
    if version.model == META_MODEL:
        return (WebhookEvent.MODEL_CHANGED,)
    was_public = before is not None and is_public(before)
    if version.is_deleted:
        return (WebhookEvent.DOCUMENT_DELETED, *((WebhookEvent.DOCUMENT_UNPUBLISHED,) if was_public else ()))
    is_new = before is None or before.is_deleted
    done = WebhookEvent.DOCUMENT_CREATED if is_new else WebhookEvent.DOCUMENT_CHANGED
    if is_public(version):
        return (done, WebhookEvent.DOCUMENT_PUBLISHED)
    return (done, WebhookEvent.DOCUMENT_UNPUBLISHED) if was_public else (done,)


def is_public(version: DocumentVersion) -> bool:
    """Return whether readers of the site see a version, in any language."""
    content = version.content
    if content is None:
        return False
    statuses = {content.status, *map(content.get_status, content.locales)}
    return ContentStatus.PUBLISHED in statuses


def build_content_payload(event: WebhookEvent, subject: ContentSubject, facts: ContentFacts) -> dict[str, Any]:
    """Return what a webhook is sent about an event of content.

    Args:
        event: The event.
        subject: What has changed.
        facts: What is stored of it.
    """
    space = subject.space
    data: dict[str, Any] = {"tenant": space.tenant, "space": space.name}
    if facts.version is not None:
        data |= _describe_version(facts.version)
    elif facts.change_set is not None:
        one = facts.change_set
        data |= {"changeSetId": one.id, "title": one.title, "status": one.status, "userId": one.user}
        data |= {"documents": one.documents} | ({"branch": one.branch} if one.branch else {})
    elif facts.submission is not None:
        data |= _describe_submission(facts.submission)
    return {"type": event.value, "timestamp": facts.at, "data": data}


def _describe_version(version: DocumentVersion) -> dict[str, Any]:
    content = version.content
    told: dict[str, Any] = {
        "model": version.model,
        "documentId": version.id,
        "version": version.version,
        "action": version.action,
        "userId": version.user,
        "source": version.source,
        "bridgeId": version.turn or None,
        "changeSetId": version.change_set or None,
    }
    if content is not None:
        told |= {"title": content.title, "slug": content.slug or None, "status": content.status.value}
        told |= {"locales": sorted(content.locales)}
    return {name: value for name, value in told.items() if value is not None}


def _describe_submission(submission: Submission) -> dict[str, Any]:
    """Return what is told of a submission: nothing of what was sent, or of who has sent or decided it."""
    told = {
        "submissionId": submission.id,
        "model": submission.model,
        "status": submission.status,
        "version": submission.version,
        "locale": submission.locale,
        "documentId": submission.entry_id,
    }
    return {name: value for name, value in told.items() if value != ""}
