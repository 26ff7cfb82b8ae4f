"""Name what is told of each change of content: the consumers of the outbox, in their order.

A consumer is a function `(resources, change)`. It is called at least once for each change, for those of one document
in their order, and again for one that it has seen when its process died or another consumer failed. So it compares
`change.version` with what it has done, or does what may be done twice. An exception lets the stream repeat the change.

To add one, add its line. The lines are paths because consumers know content, and content knows none of them.
"""

from collections.abc import Callable, Mapping, Sequence
from pkgutil import resolve_name
from typing import cast

from fermata.aws import observability
from fermata.aws.resources import Resources
from fermata.content.outbox import ChangeSetStep, ContentChange, OutboxEntry, SubmissionStep

ConsumeOutboxEntry = Callable[[Resources, OutboxEntry], None]
CONTENT_CONSUMERS: dict[str, str] = {
    "search": "fermata.turns.index_content:index_content_change",
    "webhooks": "fermata.turns.webhooks.queue_content_events:queue_content_change",
}
"""The consumers by their names, with the path `package.module:name` of each function."""
CHANGE_SET_CONSUMERS: dict[str, str] = {
    "webhooks": "fermata.turns.webhooks.queue_content_events:queue_change_set_step",
}
"""The consumers of steps of change sets, likewise."""
SUBMISSION_CONSUMERS: dict[str, str] = {
    "webhooks": "fermata.turns.webhooks.queue_content_events:queue_submission_step",
}
"""The consumers of steps of submissions, likewise. Search is told of none: their data is for moderators only."""


PREPARING_CONSUMERS: tuple[str, ...] = ("fermata.turns.index_content:index_changes_together",)
"""Functions `(resources, changes)` that do for a batch, as far as they can, what consumers do for each change."""


def prepare_content_consumers(resources: Resources, changes: Sequence[ContentChange]) -> None:
    """Let consumers do for a batch of changes at once what would take longer for each of them.

    Whatever fails is only logged: all consumers are told of each change afterwards.

    Args:
        resources: Of the process.
        changes: What was stored, in its order.
    """
    for path in PREPARING_CONSUMERS:
        try:
            resolve_name(path)(resources, changes)
        except Exception:  # noqa: BLE001 - consumers meet it again, for the change whose fault it is
            observability.log_exception("content.preparation_failed", changes=len(changes))


def tell_content_consumers(
    resources: Resources, change: OutboxEntry, consumers: Mapping[str, str] | None = None
) -> None:
    """Tell all consumers of a change. One that fails keeps the others from nothing.

    Args:
        resources: Of the process.
        change: What was stored.
        consumers: Other ones than `CONTENT_CONSUMERS`, or for steps of change sets `CHANGE_SET_CONSUMERS`, or for steps
            of submissions `SUBMISSION_CONSUMERS`.

    Raises:
        ExceptionGroup: Some consumers have failed. The change has to be repeated for all of them.
    """
    failures: list[Exception] = []
    for name, path in (_list_consumers(change) if consumers is None else consumers).items():
        try:
            cast(ConsumeOutboxEntry, resolve_name(path))(resources, change)
        except Exception as error:  # noqa: BLE001 - raised with the others', after all were told
            error.add_note(f"The consumer is {name}.")
            failures.append(error)
    if failures:
        raise ExceptionGroup("Consumers of content have failed", failures)


def _list_consumers(change: OutboxEntry) -> Mapping[str, str]:
    match change:
        case ContentChange():
            return CONTENT_CONSUMERS
        case ChangeSetStep():
            return CHANGE_SET_CONSUMERS
        case SubmissionStep():
            return SUBMISSION_CONSUMERS
