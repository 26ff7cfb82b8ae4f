"""Patch SQS: a queue keeps its URL when the emulator starts again on another port.

MiniStack builds the URL of a queue from its own port wherever it looks one up, and finds no queue after such a start:
the mapping that hands its messages to a function does nothing.
"""

from ministack.services import sqs

from local.emulator.patches.registry import Function, patch_function


@patch_function(sqs, "_queue_url_for_account", "84f56260ad93")
def find_queue_url(original: Function, account_id: str, name: str) -> str:
    """Return the URL under which a queue of this name is stored, or that of a new one."""
    known = sqs._queue_name_to_url.get_scoped(account_id, sqs.get_region(), name)
    return str(known or original(account_id, name))
