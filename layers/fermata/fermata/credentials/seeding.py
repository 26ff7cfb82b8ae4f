"""A credential that was just entered becomes the default of every scope that has none (contract instatic.md §5.14)."""

from collections.abc import Sequence

from fermata.aws import signals
from fermata.aws.desk import Desk
from fermata.credentials import defaults, models
from fermata.credentials.credential import Credential
from fermata.words.caller import Caller
from fermata.words.offered import Offered
from fermata.words.scopes import SCOPES


def fill_empty_defaults(desk: Desk, caller: Caller, credential: Credential) -> None:
    """Never fails: the credential exists already, and whoever entered it can choose defaults by hand."""
    try:
        taken = defaults.defaults_view(desk, caller.tenant)
        empty = [scope for scope in SCOPES if scope not in taken]
        best = choose(models.live(desk, credential)) if empty else None
        for scope in empty if best else ():
            defaults.fill(desk, caller, scope, credential.id, best.id if best else "")
    except Exception:  # noqa: BLE001 (see above: whatever went wrong is told to us and to nobody else)
        signals.failed("defaults.not_filled", credential=credential.id)


def choose(offered: Sequence[Offered]) -> Offered | None:
    """The smartest that can call tools, else the first that can, else the first."""
    able = [model for model in offered if model.capabilities.tool_calling] or offered
    return next((model for model in able if model.tier == "smartest"), able[0] if able else None)
