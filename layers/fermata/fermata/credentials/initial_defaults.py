"""Make a new credential the default of every scope that has none (decision 0042)."""

from collections.abc import Sequence

from fermata.aws import observability
from fermata.aws.resources import Resources
from fermata.credentials import model_list, scope_defaults
from fermata.credentials.credential import Credential
from fermata.domain.agent_ids import SCOPES
from fermata.domain.caller import Caller
from fermata.domain.errors import ApiError, ProviderError
from fermata.domain.model_info import ModelInfo


def set_missing_defaults(resources: Resources, caller: Caller, credential: Credential) -> None:
    """Set the missing defaults to the credential's best model.

    Never fails: the credential exists already, and the user can set the defaults by hand.

    Args:
        caller: The user who has entered the credential.
        credential: The new credential, whose models are fetched.
    """
    try:
        existing = scope_defaults.get_defaults_view(resources, caller.tenant)
        missing = [scope for scope in SCOPES if scope not in existing]
        model = choose_default_model(model_list.fetch_models(resources, credential)) if missing else None
        if model is not None:
            for scope in missing:
                scope_defaults.set_default_if_absent(resources, caller, scope, credential.id, model.id)
    except (ApiError, ProviderError) as error:  # their texts may be a provider's words, which no log has
        observability.log_warning("defaults.not_filled", credential=credential.id, reason=type(error).__name__)
    except Exception:  # noqa: BLE001 (see above: a failure is for the operator's log, not for the user)
        observability.log_exception("defaults.not_filled", credential=credential.id)


def choose_default_model(models: Sequence[ModelInfo]) -> ModelInfo | None:
    """Return the smartest model that can call tools, else the first that can, else the first."""
    candidates = [model for model in models if model.capabilities.tool_calling] or models
    return next((model for model in candidates if model.tier == "smartest"), candidates[0] if candidates else None)
