"""What the model of a turn can do and hold, from what is known without asking its provider.

Doors that start turns hold no provider keys, so they ask nobody: None means that nobody knows, and then the provider
itself decides.
"""

from fermata.aws.desk import Desk
from fermata.drivers.capabilities import usual_capabilities
from fermata.pricing import catalogue
from fermata.words.base import Word

CERTAIN = ("anthropic", "openai")
"""Of these, what their models usually can is what every one of them can."""
CATALOGUED = (*CERTAIN, "openrouter")
"""Whose models the catalogue knows by the names they go by there."""


class Abilities(Word):
    sees: bool | None = None
    calls_tools: bool | None = None
    window: int | None = None
    """Tokens of its context window."""


def abilities_of(desk: Desk, provider: str, model: str) -> Abilities:
    known = catalogue.known(desk) if provider in CATALOGUED else None
    offer = known.offer(model) if known else None
    usual = usual_capabilities(provider, model) if provider in CERTAIN else None
    sees, calls = (offer.sees, offer.calls) if offer else (None, None)
    return Abilities(
        sees=usual.vision_input if sees is None and usual else sees,
        calls_tools=usual.tool_calling if calls is None and usual else calls,
        window=offer.context_window if offer else None,
    )
