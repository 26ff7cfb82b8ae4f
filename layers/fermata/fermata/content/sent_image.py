"""Describe an image that the user has sent in a conversation, before it is an asset of the site."""

from collections.abc import Callable
from typing import NamedTuple


class SentImage(NamedTuple):
    """An image of a prompt.

    Attributes:
        id: Names it in the conversation. No asset has such an id.
        sent_at: When it was sent.
        words: What the user has written beside it.
        media_type: Its kind.
        load: Returns its bytes.
    """

    id: str
    sent_at: str
    words: str
    media_type: str
    load: Callable[[], bytes]

    @property
    def filename(self) -> str:
        """A name for its file, as it came without one."""
        return f"{self.id.replace(':', '-')}.{self.media_type.rpartition('/')[2]}"
