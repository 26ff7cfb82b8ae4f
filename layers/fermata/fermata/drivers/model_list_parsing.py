"""Read the entries of a provider's model list; what is not of the expected type counts as absent."""

from collections.abc import Iterator, Mapping
from typing import Any

from fermata.domain.model_info import ModelCapabilities, ModelInfo, ModelTier

MAX_MODEL_NAME_CHARS = 300
_WINDOW_FIELDS = ("context_length", "max_model_len", "context_window", "max_context_length", "max_input_tokens")


def iter_model_entries(
    listing: Any, list_fields: tuple[str, ...] = ("data", "models"), id_fields: tuple[str, ...] = ("id",)
) -> Iterator[dict[str, Any]]:
    """Yield the entries that have a name, with that name as `id`. A bare list is accepted too.

    Args:
        listing: The parsed response.
        list_fields: Members of the response that may hold the list; the first that does counts.
        id_fields: Members of an entry that may hold its name.
    """
    entries = listing
    if isinstance(listing, dict):
        entries = next((listing[name] for name in list_fields if isinstance(listing.get(name), list)), None)
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, dict):
            names = (get_short_text(entry, name) for name in id_fields)
            if model_id := next(filter(None, names), ""):
                yield entry | {"id": model_id}


def build_model_info(
    entry: Mapping[str, Any], capabilities: ModelCapabilities, *, label: str = "", tier: ModelTier | None = None
) -> ModelInfo:
    """Describe the model of an entry; the context window is read from the field that the server uses."""
    windows = (entry.get(name) for name in _WINDOW_FIELDS)
    window = next((size for size in windows if type(size) is int and size > 0), None)
    return ModelInfo(
        id=entry["id"], label=label or entry["id"], capabilities=capabilities, tier=tier, context_window=window
    )


def get_short_text(entry: Mapping[str, Any], name: str) -> str:
    value = entry.get(name)
    return value if isinstance(value, str) and len(value) <= MAX_MODEL_NAME_CHARS else ""


def get_texts(entry: Mapping[str, Any], name: str, default: tuple[str, ...] = ()) -> list[str]:
    """Return the strings of a list; `default` if the member is no list."""
    value = entry.get(name)
    return [text for text in value if isinstance(text, str)] if isinstance(value, list) else list(default)


def get_object(entry: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return an object member; an empty one if the member is no object."""
    value = entry.get(name)
    return value if isinstance(value, dict) else {}
