"""A credential that was just entered becomes the default of every scope that has none (contract instatic.md §5.14)."""

from collections.abc import Sequence

from fermata.aws import observability
from fermata.aws.resources import Resources
from fermata.credentials import model_list, scope_defaults
from fermata.credentials.credential import Credential
from fermata.domain.caller import Caller
from fermata.domain.model_info import ModelInfo
from fermata.domain.scopes import SCOPES


def set_missing_defaults(resources: Resources, caller: Caller, credential: Credential) -> None:
    """Never fails: the credential exists already, and whoever entered it can choose defaults by hand."""
    try:
        taken = scope_defaults.get_defaults_view(resources, caller.tenant)
        empty = [scope for scope in SCOPES if scope not in taken]
        best = choose_default_model(model_list.fetch_models(resources, credential)) if empty else None
        for scope in empty if best else ():
            scope_defaults.set_default_if_absent(resources, caller, scope, credential.id, best.id if best else "")
    except Exception:  # noqa: BLE001 (see above: whatever went wrong is told to us and to nobody else)
        observability.log_exception("defaults.not_filled", credential=credential.id)


def choose_default_model(offered: Sequence[ModelInfo]) -> ModelInfo | None:
    """The smartest that can call tools, else the first that can, else the first."""
    able = [model for model in offered if model.capabilities.tool_calling] or offered
    return next((model for model in able if model.tier == "smartest"), able[0] if able else None)
