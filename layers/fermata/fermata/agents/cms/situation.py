"""Describe the space of a turn to the agent of the CMS: its languages, and which models there are."""

from collections.abc import Iterable

from fermata.agents.agent_space import AgentSpace
from fermata.agents.shorten_prompt_lines import join_first_items, to_single_line
from fermata.content.content_model import ContentModel, ModelKind
from fermata.content.documents.read_document import ModelState

_MAX_MODELS = 60
_MAX_FIELDS = 30
_MAX_CHOICES = 40
_MAX_MODEL_CHARS = 600


def describe_cms_space(agent_space: AgentSpace) -> str:
    """Return the lines about a space: what can be created in it without looking it up first."""
    if agent_space.key is None:
        return _describe_choices(agent_space.choices)
    space = agent_space.space
    title = f' "{to_single_line(space.title)}"' if space.title else ""
    domain = f", published at {to_single_line(space.domain)}" if space.domain else ""
    lines = [
        f"Site: {agent_space.key.site}{title}, environment {agent_space.key.environment}{domain}.",
        f"Languages: {', '.join(space.locales)}. {space.default_locale} is the default.",
    ]
    sections = [state.model for state in agent_space.models if state.model.kind is ModelKind.SECTION]
    lines.append(f"Section definitions: {_join(_describe_fields(model) for model in sections)}")
    collections = [state for state in agent_space.models if _is_collection(state.model)]
    lines.append(f"Collections: {_join(_describe_collection(state) for state in collections)}")
    return "\n".join(lines)


def _describe_choices(choices: tuple[str, ...]) -> str:
    if not choices:
        return "Site: none. There is no site yet: tell the user to create one under Content, and change nothing."
    names = join_first_items(list(choices), _MAX_CHOICES)
    return f"Site: none is chosen. Ask the user to choose one of {names} for this conversation, and change nothing."


def _is_collection(model: ContentModel) -> bool:
    return model.kind in (ModelKind.COLLECTION, ModelKind.DOCUMENT) and model.id != "asset"


def _describe_collection(state: ModelState) -> str:
    return f"{_describe_fields(state.model)}: {state.documents} entries"


def _describe_fields(model: ContentModel) -> str:
    fields = [f"{name}{'*' if field.required else ''} {field.type.value}" for name, field in model.fields.items()]
    return f"{model.id} ({join_first_items(fields, _MAX_FIELDS)})"


def _join(parts: Iterable[str]) -> str:
    return join_first_items([to_single_line(part, _MAX_MODEL_CHARS) for part in parts], _MAX_MODELS)
