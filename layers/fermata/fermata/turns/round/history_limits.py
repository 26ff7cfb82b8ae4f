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
from fermata.conversations.history.token_estimate import estimate_tokens
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
            self._learn(window_tokens=stated_window_tokens)
        elif not self._omit_earlier_images(messages):
            image_count = sum(map(count_images, messages))
            self.profile = replace(
                self.profile, max_history_tokens=token_count // 2, max_images=max(1, image_count // 2)
            )

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
            self._learn(reads_images=False)
        else:
            self.profile = replace(self.profile, reads_images=False)
        return True

    def _omit_earlier_images(self, messages: Sequence[Message]) -> bool:
        """Omit the images of earlier turns. Returns False when there is none among the messages."""
        earlier_messages = filter_earlier_turns(messages)
        if not self.profile.reads_earlier_images or not any(map(count_images, earlier_messages)):
            return False
        self.profile = replace(self.profile, reads_earlier_images=False)
        return True

    def _learn(self, *, window_tokens: int | None = None, reads_images: bool = True) -> None:
        known = self._learned or NO_LEARNED_LIMITS
        self._learned = LearnedLimits(
            window_tokens=window_tokens or known.window_tokens,
            reads_images=reads_images and known.reads_images,
            learned_at=known.learned_at or self._clock.time(),
        )


def _without_images(profile: ModelProfile) -> ModelProfile:
    """Return the profile of a model that reads none, so that tools are not asked for any either."""
    return replace(profile, reads_images=False, reads_result_images=False)
