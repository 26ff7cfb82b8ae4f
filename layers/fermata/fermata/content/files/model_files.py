"""Convert content models to files and back. A file leaves out what a model has by default."""

from typing import Any

from fermata.content.content_model import ContentModel, ModelKind, parse_content_model
from fermata.content.files.canonical_json import UnreadableFile, format_canonical_json, parse_json_file
from fermata.domain.errors import InvalidRequest

_DEFAULTS: dict[str, Any] = {"required": False, "unique": False, "model": [], "description": ""}


def format_model_file(model: ContentModel) -> str:
    """Return the text of a model's file."""
    members = model.to_wire()
    name, fields = members.pop("title"), members.pop("fields")
    kept = {key: value for key, value in members.items() if key not in ("description", "builtIn") or value}
    if name:
        kept["name"] = name
    if fields or model.kind is not ModelKind.DICTIONARY:
        kept["fields"] = {key: _shorten_field(field) for key, field in fields.items()}
    return format_canonical_json(kept)


def _shorten_field(field: dict[str, Any]) -> dict[str, Any]:
    """Return a field without what it has by default. Names that are known are those of the layout."""
    kept = {name: value for name, value in field.items() if name not in _DEFAULTS or value != _DEFAULTS[name]}
    if len(targets := kept.get("model", ())) == 1:
        kept["model"] = targets[0]
    if isinstance(items := kept.get("items"), dict):
        short = _shorten_field(items)
        kept["items"] = short["type"] if set(short) == {"type"} else short
    if isinstance(members := kept.get("fields"), dict):
        kept["fields"] = {name: _shorten_field(member) for name, member in members.items()}
    return kept


def parse_model_file(text: str, path: str) -> ContentModel:
    """Parse the file of a model.

    Args:
        text: Its text.
        path: The file, whose name has to be that of the model.

    Raises:
        UnreadableFile: It is no model.
    """
    members = parse_json_file(text, path)
    members = {"title": members.pop("name", ""), **{key: one for key, one in members.items() if key != "title"}}
    try:
        model = parse_content_model(members)
    except InvalidRequest as error:
        raise UnreadableFile(path, error.message) from None
    if f"/{model.id}.json" != path[path.rfind("/") :]:
        raise UnreadableFile(path, f"it describes the model {model.id}, which belongs into {model.id}.json.")
    return model
