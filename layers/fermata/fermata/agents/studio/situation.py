"""Describe a project to the studio's agent, in the sections that change from turn to turn.

What the user has open, what the message seems to be about, the state, configuration, models, relations and terms of the
project, what the caller may do, and what the content holds.
"""

import json
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from fermata.agents.agent_space import AgentSpace
from fermata.agents.shorten_prompt_lines import join_first_items, to_single_line
from fermata.agents.studio.intent import classify_intent
from fermata.aws.workspace_subscription import read_subscription
from fermata.content.change_sets.branch_names import PERMANENT_BRANCH
from fermata.content.change_sets.change_set import ChangeSet
from fermata.content.content_model import ContentModel
from fermata.content.documents.document import ContentAuthor, DocumentKey
from fermata.content.fields import RELATION_TYPES, FieldDefinition
from fermata.content.files.read_project import VOCABULARY_KEY
from fermata.content.opened_space import OpenedSpace
from fermata.content.validation.schema_health import MAX_ADVISED_DEPTH, check_schema
from fermata.domain.plan_parts import PLAN_PARTS
from fermata.domain.workspace_plan import PlanFeature, PlanQuota
from fermata.tools.studio.content_analysis import iter_health_issues
from fermata.tools.studio.content_tools import list_terms
from fermata.tools.studio.studio_access import StudioAccess, read_caller_permissions
from fermata.tools.studio.tool_rules import TOOL_RULES, list_offered_tools

_MAX_BRANCHES, _MAX_TERMS, _MAX_PINNED, _MAX_TITLES, _MAX_SCHEMA_ISSUES = 5, 10, 10, 5, 5
_MAX_HEALTH_ISSUES, _MAX_RULE_CHARS = 10, 80
_MAX_PINNED_CHARS = 200
_MAX_MODELS, _MAX_FIELDS, _MAX_OPTIONS = 60, 60, 20
_TOLD_FEATURES = (PlanFeature.FORM_CAPTCHA, PlanFeature.FORM_AUTO_APPROVE, PlanFeature.MODEL_RESTRICTIONS)
_TOLD_QUOTAS = (PlanQuota.MEDIA_BYTES, PlanQuota.FORMS)
"""What somebody may ask the agent for. Others are found by those who set them up."""


def describe_studio_space(agent_space: AgentSpace) -> str:
    """Return the sections about a project and the message."""
    if agent_space.key is None:
        names = join_first_items(list(agent_space.choices), 40) or "none: the user has to create one"
        return f"## Project\nNone is chosen. Ask the user which one to work on ({names}), and change nothing."
    access, ui = _open_access(agent_space), _read_ui(agent_space.ui_context)
    sections = (
        ("Context", _describe_ui(access, ui)),
        *_describe_intent(agent_space.prompt_text, ui),
        ("Project state", _describe_state(access)),
        ("Configuration", _describe_config(access, agent_space)),
        ("Content schema", _describe_models(access, ui)),
        ("Relations", _describe_relations(access)),
        ("Vocabulary", _describe_terms(access)),
        ("Permissions", _describe_permissions(access)),
        ("Workflow and plan", _describe_rules(access)),
        ("Content index", _describe_index(access)),
    )
    return "\n\n".join(f"## {title}\n{text}" for title, lines in sections if (text := "\n".join(lines)))


def list_withheld_studio_tools(agent_space: AgentSpace) -> tuple[str, ...]:
    """Return the tools that a turn is not offered: not in this phase, or not to this caller."""
    if agent_space.key is None:
        return tuple(TOOL_RULES)
    access = _open_access(agent_space)
    offered = set(list_offered_tools(access.phase)) & access.permissions.tools
    return tuple(name for name in TOOL_RULES if name not in offered)


def _open_access(agent_space: AgentSpace) -> StudioAccess:
    assert agent_space.resources is not None
    assert agent_space.key is not None
    opened = OpenedSpace(agent_space.resources, agent_space.key, ContentAuthor(""))
    permissions = read_caller_permissions(opened, agent_space.user, agent_space.capabilities)
    return StudioAccess(opened, permissions, {})


def _read_ui(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _describe_ui(access: StudioAccess, ui: Mapping[str, Any]) -> Iterator[str]:
    labels = {
        "activeModelId": "Model", "activeLocale": "Locale", "activeEntryId": "Entry", "panelState": "Panel",
        "activeBranch": "Branch",
    }  # fmt: skip
    for name, label in labels.items():
        if isinstance(value := ui.get(name), str) and value:
            model = access.models.get(value) if name == "activeModelId" else None
            yield f"{label}: {to_single_line(value)}" + (f" ({model.kind.value})" if model else "")
    items = ui.get("contextItems")
    for item in items[:_MAX_PINNED] if isinstance(items, list) else ():
        if isinstance(item, dict):
            yield f"Pinned {_describe_pinned(item)}"


def _describe_pinned(item: Mapping[str, Any]) -> str:
    kind = to_single_line(str(item.get("type") or "item"))
    name = to_single_line(str(item.get("label") or item.get("id") or item.get("entryId") or ""))
    data = item.get("data", item.get("value", item.get("path", "")))
    text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
    source = f" of {to_single_line(str(item['modelId']))}" if item.get("modelId") else ""
    return f"{kind} {name}{source}: {to_single_line(text, _MAX_PINNED_CHARS)}"


def _describe_intent(text: str, ui: Mapping[str, Any]) -> tuple[tuple[str, list[str]], ...]:
    """Return the section about what the message seems to be about; none if it seems to be about something else."""
    if not text:
        return ()
    intent = classify_intent(text, ui)
    if intent.category == "out_of_scope":
        return ()
    labels = {"modelId": "Default model", "locale": "Default locale", "entryId": "Default entry"}
    lines = [f"Confidence: {intent.confidence}"]
    lines += [f"{labels[name]}: {to_single_line(value)}" for name, value in intent.inferred.items()]
    if intent.confidence == "high" and intent.inferred:
        lines.append("Use these defaults without asking.")
    return ((f"Inferred intent: {intent.category}", lines),)


def _describe_state(access: StudioAccess) -> Iterator[str]:
    yield f"Phase: {access.phase.value}"
    branches = [_name_branch(one) for one in access.visible_branches if one.branch != PERMANENT_BRANCH]
    if branches:
        yield f"Waiting branches ({len(branches)}): {join_first_items(branches, _MAX_BRANCHES)}"
    context = access.whole.settings.get("context")
    last = context.get("lastOperation") if isinstance(context, dict) else None
    if isinstance(last, dict) and not access.permissions.is_restricted:
        yield f"Last operation: {to_single_line(json.dumps(last, ensure_ascii=False), _MAX_PINNED_CHARS)}"
    entries = sum(len(access.list_entries(model)) for model in access.models.values())
    yield f"Models: {len(access.models)}, entries: {entries}"


def _name_branch(branch: ChangeSet) -> str:
    """Return the name of a branch, with the title that a person has given it."""
    title = "" if branch.title in ("", branch.branch) else f" ({branch.title})"
    return to_single_line(f"{branch.branch_name}{title}")


def _describe_config(access: StudioAccess, agent_space: AgentSpace) -> Iterator[str]:
    assert agent_space.key is not None
    yield f"Project: {agent_space.key.name}"
    for name in ("stack", "domains"):
        if value := access.config.get(name):
            yield f"{name.capitalize()}: {to_single_line(json.dumps(value, ensure_ascii=False))}"
    yield f"Languages: {', '.join(access.whole.record.locales)}; the first is the default"
    yield f"Workflow: {to_single_line(access.workflow)}"


def _describe_models(access: StudioAccess, ui: Mapping[str, Any]) -> Iterator[str]:
    models = list(access.models.values())
    for model in models[:_MAX_MODELS]:
        mark = " (open)" if model.id == ui.get("activeModelId") else ""
        count = len(access.list_entries(model))
        translated = ", translated" if model.i18n else ""
        yield f"{model.id}{mark}: {model.kind.value}{translated}, domain {model.domain}, {count} entries"
        fields = [_describe_field(name, field) for name, field in model.fields.items()]
        if fields:
            yield f"  {join_first_items(fields, _MAX_FIELDS)}"
    if len(models) > _MAX_MODELS:
        yield f"... and {len(models) - _MAX_MODELS} more, which list_models lists"


def _describe_field(name: str, field: FieldDefinition, depth: int = 0) -> str:
    parts = [f"{to_single_line(name)}{'*' if field.required else ''} {field.type.value}"]
    parts += [word for word, is_set in (("unique", field.unique),) if is_set]
    parts += [f"{word} {value:g}" for word, value in (("min", field.min), ("max", field.max)) if value is not None]
    if field.options:
        parts.append("of " + "/".join(to_single_line(one) for one in field.options[:_MAX_OPTIONS]))
    if field.model:
        parts.append("to " + "/".join(field.model))
    if field.items is not None:
        parts.append(f"of {_describe_field('items', field.items, depth).removeprefix('items ')}")
    parts += [f"{word} {to_single_line(str(value), _MAX_RULE_CHARS)}" for word, value in _list_rules(field)]
    if field.fields and depth < MAX_ADVISED_DEPTH:
        members = [_describe_field(member, one, depth + 1) for member, one in field.fields.items()]
        parts.append(f"{{{join_first_items(members, _MAX_OPTIONS)}}}")
    return " ".join(parts)


def _list_rules(field: FieldDefinition) -> list[tuple[str, Any]]:
    """Return what else is asked of a value, as far as it is said."""
    rules = {"default": field.default, "pattern": field.pattern, "accept": field.accept, "maxSize": field.max_size}
    return [(name, value) for name, value in rules.items() if value is not None]


def _describe_relations(access: StudioAccess) -> Iterator[str]:
    for model in access.models.values():
        for name, field in model.fields.items():
            if field.type in RELATION_TYPES:
                many = "many" if field.type.value == "relations" else "one"
                targets = " or ".join(_name_target(access.models.get(target), target) for target in field.model)
                yield f"{model.id}.{to_single_line(name)} -> {targets} ({many})"


def _name_target(model: ContentModel | None, target: str) -> str:
    by = "slug" if model is not None and model.kind.value == "document" else "id"
    return f"{target} by {by}"


def _describe_terms(access: StudioAccess) -> Iterator[str]:
    content = access.whole.get_content(VOCABULARY_KEY)
    terms = list_terms(content, access.permissions.allowed_locales) if content else {}
    for term, texts in list(terms.items())[:_MAX_TERMS]:
        yield to_single_line(f"{term}: {json.dumps(texts, ensure_ascii=False)}", _MAX_PINNED_CHARS)
    if len(terms) > _MAX_TERMS:
        yield f"... and {len(terms) - _MAX_TERMS} more terms"


def _describe_permissions(access: StudioAccess) -> Iterator[str]:
    permissions = access.permissions
    yield f"Role: {permissions.project_role or permissions.workspace_role}"
    if permissions.allowed_models is not None:
        yield f"Only these models: {', '.join(sorted(permissions.allowed_models)) or 'none'}"
    if permissions.allowed_locales is not None:
        yield f"Only these languages: {', '.join(sorted(permissions.allowed_locales)) or 'none'}"
    tools = [name for name in list_offered_tools(access.phase) if name in permissions.tools]
    yield f"Tools: {', '.join(tools) or 'none'}"


def _describe_rules(access: StudioAccess) -> Iterator[str]:
    """Say what becomes of changes, and what the plan of the workspace has not."""
    if not access.has_reviews:
        yield "The plan of this workspace has no reviews: what anybody changes is live and published at once."
    elif access.workflow != "auto-merge" and not access.permissions.merges_in_review:
        yield "What this user changes waits for a review. Say so when you have changed something."
    else:
        yield "What this user changes is live at once."
    subscription = read_subscription(access.opened.resources, access.opened.space.tenant)
    lacking: list[PlanFeature | PlanQuota] = [one for one in _TOLD_FEATURES if not subscription.has_feature(one)]
    lacking += [one for one in _TOLD_QUOTAS if subscription.get_limit(one) == 0]
    if lacking:
        words = ", no ".join(PLAN_PARTS[one].words for one in lacking)
        yield f"The plan {subscription.plan} has no {words}. Who asks for that needs a larger plan: say so."


def _describe_index(access: StudioAccess) -> Iterator[str]:
    for model in list(access.models.values())[:_MAX_MODELS]:
        entries = access.list_entries(model)
        changed = sorted(
            ((access.whole.versions[DocumentKey(model.id, name)].at, name) for name in entries), reverse=True
        )
        newest = [name for _, name in changed[:_MAX_TITLES]]
        titles = [f"{name}={to_single_line(entries[name].title, 60)}" for name in newest if entries[name].title]
        if titles:
            yield f"{model.id}: {', '.join(titles)}"
    health = list(islice(iter_health_issues(access), _MAX_HEALTH_ISSUES + 1))
    for issue in health[:_MAX_HEALTH_ISSUES]:
        yield f"Content issue: {to_single_line(issue)}"
    if len(health) > _MAX_HEALTH_ISSUES:
        yield "... and more, which brain_analyze counts"
    report = check_schema(access.models, access.models)
    issues = [one for one in report["warnings"] if one["severity"] != "warning"][:_MAX_SCHEMA_ISSUES]
    for one in issues:
        yield f"Schema issue: {one['model']}.{one['field']}: {one['message']}"
