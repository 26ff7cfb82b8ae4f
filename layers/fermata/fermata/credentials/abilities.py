"""What the model of a turn can do and hold, from what is known without asking its provider.

Doors that start turns hold no provider keys, so they ask nobody. What a credential's server said when its models were
last listed counts first, so that nobody is refused what the list promises, or promised what is refused:

    t#<tenant>   listed#<credential>   which models there are, and which of them see and call tools
"""

import json
import zlib
from collections.abc import Iterable
from typing import Any

from fermata.aws.desk import Desk
from fermata.aws.dynamo import Put
from fermata.credentials.choosing import Chosen
from fermata.credentials.credential import Credential, listed_key
from fermata.drivers.capabilities import usual_capabilities
from fermata.pricing import catalogue
from fermata.words.base import Word
from fermata.words.offered import Offered

CERTAIN = ("anthropic", "openai")
"""Of these, what their models usually can is what every one of them can."""
CATALOGUED = (*CERTAIN, catalogue.ROUTER)
"""Whose models the catalogue knows by the names they go by there."""
MOST_BYTES = 350_000
"""Of a list, packed: an item of DynamoDB holds 400 KB. OpenRouter's takes about 10."""


class Abilities(Word):
    """None: nobody knows, and then the provider itself decides."""

    sees: bool | None = None
    calls_tools: bool | None = None
    window: int | None = None
    """Tokens of its context window."""


def abilities_of(desk: Desk, provider: str, model: str) -> Abilities:
    known = catalogue.known(desk) if provider in CATALOGUED else None
    listed = known.listed(provider, model) if known else None
    usual = usual_capabilities(provider, model) if provider in CERTAIN else None
    sees, calls = (listed.sees, listed.calls) if listed else (None, None)
    return Abilities(
        sees=usual.vision_input if sees is None and usual else sees,
        calls_tools=usual.tool_calling if calls is None and usual else calls,
        window=listed.context_window if listed else None,
    )


def abilities_of_chosen(desk: Desk, tenant: str, chosen: Chosen) -> Abilities:
    """The same, with what the credential's own server said of the model."""
    known = abilities_of(desk, chosen.provider, chosen.model)
    told = _listed(desk, tenant, chosen) if chosen.provider not in CERTAIN else None
    return known.model_copy(update=told) if told else known


def remember(desk: Desk, credential: Credential, offered: Iterable[Offered]) -> None:
    """What a server just said of its models; it replaces what it said before."""
    if credential.provider_id in CERTAIN:
        return
    listed = {model.id: [model.capabilities.vision_input, model.capabilities.tool_calling] for model in offered}
    data = zlib.compress(json.dumps(listed, separators=(",", ":")).encode())
    if len(data) <= MOST_BYTES:
        item = {"pk": f"t#{credential.tenant}", "sk": listed_key(credential.id), "v": 1}
        desk.tables.write(Put(desk.settings.settings_table, item | {"version": credential.version, "data": data}))


def _listed(desk: Desk, tenant: str, chosen: Chosen) -> dict[str, Any] | None:
    """Of another version of the credential nothing counts: that may have been another server."""
    item = desk.tables.get(desk.settings.settings_table, f"t#{tenant}", listed_key(chosen.credential_id))
    if item is None or item["version"] != chosen.version:
        return None
    told = json.loads(zlib.decompress(bytes(item["data"]))).get(chosen.model)
    return {"sees": told[0], "calls_tools": told[1]} if told else None
