"""Decide how much of a conversation a model is sent: by what is known of it, and by what its server has refused."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property

from fermata.aws.clock import Clock
from fermata.conversations.history.image_selection import count_images, filter_earlier_turns
from fermata.conversations.history.learned_limits import (
    NO_LEARNED_LIMITS,
    LearnedLimits,
    ModelKey,
    find_learned_limits,
)
from fermata.conversations.history.model_profile import ModelProfile
from fermata.conversations.history.token_estimate import MAX_TOKENS_PER_IMAGE, estimate_tokens
from fermata.domain.messages import Message
from fermata.domain.model_io import ModelResponse


class HistoryLimits:
    """The limits of one invocation. Each refusal narrows them."""

    def __init__(self, build_profile: Callable[[int | None], ModelProfile], key: ModelKey, clock: Clock) -> None:
        """
        Args:
            build_profile: Builds the profile of the model, given the window that its server has stated.
            key: What learned limits are remembered for.
            clock: Says how old they are.
        """
        self._build_profile = build_profile
        self._key = key
        self._clock = clock
        self._learned: LearnedLimits | None = None
        """None until the history was read."""

    @cached_property
    def profile(self) -> ModelProfile:
        """The limits within which the history is compiled."""
        return self._build_profile(None)

    def read_learned(self, newest_first: Sequence[Message]) -> None:
        """Begin with what refusals have said of the model in earlier invocations (decision 0267)."""
        if self._learned is not None:
            return
        self._learned = find_learned_limits(newest_first, self._key, now=self._clock.time())
        if not self._learned.is_empty:
            self.profile = self._build_profile(self._learned.window_tokens)
        if not self._learned.reads_images:
            self.profile = _without_images(self.profile)
        tokens = min(self.profile.max_history_tokens, self._learned.history_tokens or self.profile.max_history_tokens)
        images_after = -1 if self._learned.images_after is None else self._learned.images_after
        self.profile = replace(self.profile, max_history_tokens=tokens, images_after=images_after)

    def mark_response(self, response: ModelResponse) -> ModelResponse:
        """Return the response with what refusals have said of the model, for the invocations to come."""
        if self._learned is None or self._learned.is_empty:
            return response
        return response.model_copy(update={"blocks": (self._learned.build_mark(self._key), *response.blocks)})

    def reduce_tokens(self, messages: Sequence[Message], stated_window_tokens: int | None) -> None:
        """Allow less than these messages have, after the provider has said that they are too long or too many images.

        First the images of earlier turns are left out, then half of the history. If the provider has said how large its
        context window is, the history is cut to that at once.
        """
        token_count = estimate_tokens(messages)
        stated = self._build_profile(stated_window_tokens)
        if stated_window_tokens and stated.max_history_tokens < token_count:
            self.profile = replace(self.profile, max_history_tokens=stated.max_history_tokens)
            self._learn(replace(self._known, window_tokens=stated_window_tokens))
        elif not self._omit_earlier_images(messages):
            image_count = sum(map(count_images, messages))
            self.profile = replace(
                self.profile, max_history_tokens=token_count // 2, max_images=_halve_images(image_count, token_count)
            )
            if not image_count:  # otherwise the refusal may have been about these
                self._learn(replace(self._known, history_tokens=token_count // 2))

    def reduce_images(self, messages: Sequence[Message], *, says_no_images: bool) -> bool:
        """Allow fewer images, after the provider has said that it cannot read one or that its model reads none.

        First the images of earlier turns are left out, then all.

        Args:
            says_no_images: Whether the model reads none, so that all are left out at once.

        Returns:
            False when there are none among the messages.
        """
        if not says_no_images and self._omit_earlier_images(messages):
            return True
        if not any(map(count_images, messages)):
            return False
        if says_no_images:
            self.profile = _without_images(self.profile)
            self._learn(replace(self._known, reads_images=False))
        else:
            self._omit_images(messages)
        return True

    def _omit_earlier_images(self, messages: Sequence[Message]) -> bool:
        """Omit the images of earlier turns. Returns False when there is none among the messages."""
        earlier_messages = filter_earlier_turns(messages)
        if not any(map(count_images, earlier_messages)):
            return False
        self._omit_images(earlier_messages)
        return True

    def _omit_images(self, messages: Sequence[Message]) -> None:
        """Omit the images of these messages and of all before them, in later turns too."""
        images_after = max(message.position for message in messages)
        self.profile = replace(self.profile, images_after=images_after)
        self._learn(replace(self._known, images_after=images_after))

    @property
    def _known(self) -> LearnedLimits:
        return self._learned or NO_LEARNED_LIMITS

    def _learn(self, limits: LearnedLimits) -> None:
        """Keep what is known now. It is as old as what was learned first."""
        self._learned = replace(limits, learned_at=limits.learned_at or self._clock.time())


def _halve_images(image_count: int, token_count: int) -> int:
    """Return how many images may stay. The last one stays as long as most of the request is text."""
    is_mostly_text = token_count > 2 * MAX_TOKENS_PER_IMAGE
    return 1 if image_count == 1 and is_mostly_text else image_count // 2


def _without_images(profile: ModelProfile) -> ModelProfile:
    """Return the profile of a model that reads none, so that tools are not asked for any either."""
    return replace(profile, reads_images=False, reads_result_images=False)
