"""Find or begin the change set of a conversation, which takes what its assistant changes while it waits for a review.

A conversation has one that is open at a time. When it was merged or discarded, the next change begins another one.
"""

import hashlib

from fermata.aws.resources import Resources
from fermata.content.change_sets.change_set import ChangeSet
from fermata.content.change_sets.change_set_store import begin_change_set, list_change_sets
from fermata.content.content_space import SpaceKey
from fermata.content.documents.document import ContentAuthor

CONVERSATION_CHANGES = "Changes of a conversation"
"""The title of the change set of a conversation."""
_ID_DIGITS = 24


def find_conversation_change_set(resources: Resources, space: SpaceKey, conversation: str) -> str:
    """Return the id of the change set of a conversation that is open; empty if it has none."""
    return _pick_open(_list_own(resources, space, conversation))


def open_conversation_change_set(
    resources: Resources, space: SpaceKey, conversation: str, author: ContentAuthor
) -> str:
    """Return the id of the change set of a conversation that is open; begin one if it has none.

    Args:
        resources: Of the process.
        space: The space.
        conversation: The conversation.
        author: Who begins it.

    Raises:
        TooManyRequests: Too many change sets wait to be merged.
    """
    own = _list_own(resources, space, conversation)
    if found := _pick_open(own):
        return found
    # Two calls at the same moment begin the same one.
    number = max((int(one.id.rpartition("-")[2]) for one in own), default=0) + 1
    change_set_id = f"{_make_prefix(space, conversation)}{number}"
    return begin_change_set(resources, space, CONVERSATION_CHANGES, author, change_set_id=change_set_id).id


def _list_own(resources: Resources, space: SpaceKey, conversation: str) -> list[ChangeSet]:
    prefix = _make_prefix(space, conversation)
    return [one for one in list_change_sets(resources, space) if one.id.startswith(prefix)]


def _pick_open(own: list[ChangeSet]) -> str:
    return next((one.id for one in own if one.status == "open"), "")


def _make_prefix(space: SpaceKey, conversation: str) -> str:
    digest = hashlib.sha256(f"{space.pk} {conversation}".encode()).hexdigest()
    return f"talk-{digest[:_ID_DIGITS]}-"
