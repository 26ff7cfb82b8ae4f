"""List the models that are asked in place of a turn's own model when it fails (decision 0386)."""

from fermata.domain.run_settings import RunSettings

MAX_FALLBACK_MODELS = 8


def list_fallback_models(settings: RunSettings) -> tuple[str, ...]:
    """Return the further models of an agent, in the order in which they are asked.

    Args:
        settings: Of the agent. `providerOptions.gateway` has the names, in the form of its connection, as `models` or
            `fallbackModels`.
    """
    options = settings.provider_options.get("gateway")
    named = options if isinstance(options, dict) else {}
    names = named.get("models") or named.get("fallbackModels")
    listed = names if isinstance(names, list | tuple) else ()
    return tuple(dict.fromkeys(name for name in listed if isinstance(name, str) and name))[:MAX_FALLBACK_MODELS]
