"""Queue for webhooks what has changed in content: a consumer of its outbox (decision 0491).

A change is one message, whatever it is and however many webhooks there are. So the stream, which all tenants share,
waits for one read and at most one message of each change.
"""

from fermata.aws.resources import Resources
from fermata.content.content_space import SpaceKey
from fermata.content.outbox import ChangeSetStep, ContentChange, SubmissionStep
from fermata.turns.webhooks.content_subject import ContentSubject, ContentSubjectKind
from fermata.webhooks.webhook import read_webhooks


def queue_content_change(resources: Resources, change: ContentChange) -> None:
    """Queue a version of a document, if a webhook of its tenant is told about content.

    Args:
        resources: Tables and queue.
        change: What was stored.
    """
    _queue_subject(resources, ContentSubject(change.space, change.document.model, change.document.id, change.version))


def queue_change_set_step(resources: Resources, step: ChangeSetStep) -> None:
    """Queue that a change set was opened or closed, likewise.

    Args:
        resources: Tables and queue.
        step: What became of it.
    """
    subject = ContentSubject(step.space, "", step.change_set, step.version, ContentSubjectKind.CHANGE_SET)
    _queue_subject(resources, subject)


def queue_submission_step(resources: Resources, step: SubmissionStep) -> None:
    """Queue that a submission was received, or that somebody has decided about it, likewise.

    Args:
        resources: Tables and queue.
        step: What became of it.
    """
    subject = ContentSubject(step.space, "", step.submission, step.version, ContentSubjectKind.SUBMISSION)
    _queue_subject(resources, subject)


def _queue_subject(resources: Resources, subject: ContentSubject) -> None:
    if _has_listeners(resources, subject.space):
        resources.webhook_queue.send({"tenant": subject.space.tenant, "content": str(subject)})


def _has_listeners(resources: Resources, space: SpaceKey) -> bool:
    webhooks = read_webhooks(resources, space.tenant).webhooks
    return any(webhook.enabled and any(event.is_of_content for event in webhook.events) for webhook in webhooks)
