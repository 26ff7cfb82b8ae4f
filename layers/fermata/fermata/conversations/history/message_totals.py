"""Add up what a request depends on in all messages, in a history that grows at its end (decision 0603)."""

from collections.abc import Sequence

from fermata.conversations.block_predicates import has_images
from fermata.conversations.history.token_estimate import estimate_tokens
from fermata.domain.messages import Message


class MessageTotals:
    """The tokens of the messages of the last `update`, and whether there are images in them."""

    def __init__(self) -> None:
        self._messages: list[Message] = []
        self.tokens = 0
        self.has_images = False

    def update(self, messages: Sequence[Message]) -> None:
        """Look at the messages. Those with which the last ones began are not looked at again."""
        count = len(self._messages)
        if messages[:count] != self._messages:  # which compares the same objects without looking into them
            count, self.tokens, self.has_images = 0, 0, False
        added = messages[count:]
        self.tokens += estimate_tokens(added)
        self.has_images = self.has_images or any(map(has_images, added))
        self._messages = list(messages)
