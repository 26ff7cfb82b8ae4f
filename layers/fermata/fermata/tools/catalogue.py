"""Which toolset and which prompt belong to a scope."""

from typing import Any

from fermata.tools.names import Names
from fermata.tools.site import prompt as site_prompt
from fermata.tools.site.tools import SITE
from fermata.tools.toolset import Toolset

_WITHOUT_TOOLS = (
    "You help the user of a content system in its {scope} area. You have no tools there yet, so answer from what you "
    "are told and say so when something would need one."
)


def toolset_for(scope: str) -> Toolset:
    return SITE if scope == SITE.name else Toolset(scope)


def system_prompt(scope: str, names: Names = Names.SEED) -> str:
    """The stable part: the same text for every turn of a scope, so that providers can cache it."""
    return site_prompt.system_prompt(names) if scope == SITE.name else _WITHOUT_TOOLS.format(scope=scope)


def situation(scope: str, snapshot: Any, names: Names = Names.SEED) -> str:
    """What changes from turn to turn; comes last in the request."""
    if scope != SITE.name:
        return ""
    from fermata.tools.site.situation import situation as of_site  # the rounds of a turn never need it

    return of_site(snapshot, names)
