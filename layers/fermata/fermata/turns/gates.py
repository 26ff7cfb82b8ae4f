"""What a prompt asks of its model, refused before anything is written when it is known that the model cannot do it."""

from collections.abc import Sequence

from fermata.aws.desk import Desk
from fermata.credentials.abilities import CERTAIN, abilities_of, abilities_of_chosen
from fermata.credentials.choosing import Chosen
from fermata.tools.catalogue import toolset_for
from fermata.words.blocks import Block
from fermata.words.caller import Caller
from fermata.words.errors import Unprocessable

BLIND = "The model {} cannot see images. Choose another model, or send the text alone."
HANDLESS = "The model {} cannot call tools, and there is nothing to be done here without them. Choose another model."


def check_abilities(desk: Desk, caller: Caller, chosen: Chosen, scope: str, content: Sequence[Block]) -> None:
    """Raises Unprocessable. What nobody knows is let through: the provider will say."""
    has_pictures = any(block.kind == "image" for block in content)
    if chosen.provider in CERTAIN and not has_pictures:
        return
    # What was listed is one more thing to read: for pictures, of which servers differ most.
    looked_up = abilities_of_chosen(desk, caller.tenant, chosen) if has_pictures else None
    known = looked_up or abilities_of(desk, chosen.provider, chosen.model)
    if has_pictures and known.sees is False:
        raise Unprocessable(BLIND.format(chosen.model))
    if known.calls_tools is False and toolset_for(scope).offered(caller.capabilities, scope, tenant=caller.tenant):
        raise Unprocessable(HANDLESS.format(chosen.model))
