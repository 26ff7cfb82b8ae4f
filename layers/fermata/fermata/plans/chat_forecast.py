"""Say what a message will probably ask of the planner, before it is sent: for the placeholder of a client."""

from typing import Literal, NamedTuple

from fermata.plans.user_intent import asks_for_new_page, asks_to_delete_page, has_pair, split_words

Latency = Literal["instant", "moderate", "slow"]
LONG_MESSAGE_WORDS = 120
"""Words of a message that asks for several things."""
_DECISIONS = ("apply_pending_plan", "discard_pending_plan")
_VERBS = {
    "remove_block": frozenset({"remove", "delete", "drop"}),
    "move_block": frozenset({"move", "reorder"}),
    "duplicate_block": frozenset({"duplicate", "copy", "clone", "repeat"}),
    "rename_page": frozenset({"rename"}),
    "add_block": frozenset({"add", "insert", "append"}),
    "update_props": frozenset({"change", "edit", "update", "replace", "rewrite", "set", "shorten", "translate"}),
}
_IMAGES = frozenset({"image", "images", "picture", "pictures", "photo", "photos", "illustration"})
_MAKING = frozenset({"generate", "draw", "create", "make", "paint"})
_WHOLE = frozenset({"all", "every", "entire", "whole", "site", "website", "pages"})


class ChatForecast(NamedTuple):
    """What is expected of a chat. `action` is an operation or what becomes of a plan; None if the words do not say."""

    is_deterministic: bool
    latency: Latency
    action: str | None


def forecast_chat(message: str, execution_mode: str) -> ChatForecast:
    """Guess by words alone what a chat will do, and how long that takes.

    Args:
        message: Of the user.
        execution_mode: Of the request.
    """
    if execution_mode in _DECISIONS:
        return ChatForecast(True, "instant", execution_mode)
    words = split_words(message.lower())
    return ChatForecast(False, _guess_latency(words), _guess_action(words))


def _guess_latency(words: list[str]) -> Latency:
    makes_images = has_pair(words, _MAKING, _IMAGES)
    is_large = asks_for_new_page(words) or bool(_WHOLE.intersection(words)) or len(words) > LONG_MESSAGE_WORDS
    return "slow" if makes_images or is_large else "moderate"


def _guess_action(words: list[str]) -> str | None:
    if asks_to_delete_page(words):
        return "remove_page"
    if asks_for_new_page(words):
        return "create_page"
    found = {word: action for action, verbs in _VERBS.items() for word in verbs}
    return next((found[word] for word in words if word in found), None)
