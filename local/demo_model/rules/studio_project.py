"""Answer prompts about a project of the studio: list what there is, add a field, change a value, translate, merge.

Nothing is translated by a model here: the terms of the project's vocabulary are replaced, and every text is marked.
"""

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from local.demo_model.model_answer import ModelAnswer, ToolCall
from local.demo_model.rules.intents import quoted_phrases
from local.demo_model.rules.translate_terms import translate_fields

if TYPE_CHECKING:
    from local.demo_model.rules.next_answer import TurnSoFar

STUDIO_TOOLS = (
    *("list_models", "list_branches", "merge_branch", "reject_branch", "save_model", "save_content"),
    *("brain_search", "brain_query", "vocabulary"),
)
STUDIO_ABILITIES = (
    'I can list what there is ("Which models are there?", "What waits to be merged?"), add a field ("Add a date field '
    '“updated” to stories"), change a value ("Change the price of “Rye bread” to “5.8”"), translate an entry '
    '("Translate “Rye bread” to German") and merge or reject a change set ("Merge what waits").'
)
_LANGUAGES = {
    "english": "en", "german": "de", "french": "fr", "spanish": "es", "italian": "it", "turkish": "tr", "dutch": "nl",
    "portuguese": "pt", "polish": "pl",
}  # fmt: skip
_LOCALE = re.compile(r"\b(?:to|into)\s+(?P<name>[a-z]{4,12}|[a-z]{2}(?:-[a-z]{2})?)\b", re.I)
_TRANSLATE = re.compile(r"\btranslate\b", re.I)
_DECIDE = re.compile(r"\b(?P<what>merge|approve|reject)\b", re.I)
_ADD_FIELD = re.compile(r"\badd\b(?P<kind>[^“\"]{0,60}?)\bfield\b(?P<rest>.{0,200})", re.I | re.S)
_OF_MODEL = re.compile(r"\b(?:to|on|in|of|for) (?:the )?(?:model )?(?P<model>[\w-]{2,60})\W*$", re.I)
_FIELD_NAME = re.compile(r"^\W*(?:called |named )?(?P<name>[\w -]{1,40}?) (?:to|on|in|of|for)\b", re.I)
_CHANGE = re.compile(r"\b(?:change|set)\b.{0,20}?\bthe (?P<field>[\w-]{1,40}) of\b", re.I)
_LIST = re.compile(r"^\W*(?:please )?(?:which|what|list|show|how many)\b", re.I)
_BRANCHES = re.compile(r"\bbranch|\bchange sets?\b|\bwait", re.I)
_TYPES = ("string", "text", "markdown", "url", "email", "date", "boolean", "number", "integer", "decimal", "image")
_OPEN = {
    "modelId": re.compile(r"^Model: (\S{1,60})", re.M),
    "entryId": re.compile(r"^Entry: (\S{1,60})", re.M),
    "locale": re.compile(r"^Languages: ([^\s,;]{1,20})", re.M),
}
"""What the context block says of the page that the user has open, and of the language that is translated from."""
_MAX_SHOWN = 20


def answer_studio_prompt(turn_so_far: "TurnSoFar") -> ModelAnswer:
    """Return the next call for a prompt, or what became of the calls."""
    if failed := _list_failures(turn_so_far):
        return ModelAnswer(text=f"That did not work. {' · '.join(failed)}")
    rules: tuple[tuple[re.Pattern[str], Callable[[TurnSoFar], ModelAnswer]], ...] = (
        (_TRANSLATE, _translate),
        (_ADD_FIELD, _add_field),
        (_CHANGE, _change_value),
        (_LIST, _list),
        (_DECIDE, _decide),
    )
    for pattern, rule in rules:
        if pattern.search(turn_so_far.prompt):
            return rule(turn_so_far)
    return ModelAnswer(text=f"You said: “{turn_so_far.prompt[:120]}”. {STUDIO_ABILITIES}")


def _list_failures(turn_so_far: "TurnSoFar") -> list[str]:
    """Return what was refused. The studio's tools say in their data what they have not done."""
    failed = []
    for result in turn_so_far.results:
        data = _unwrap(result.data)
        errors = [str(one.get("message")) for one in data.get("errors") or [] if one.get("severity") == "error"]
        if reason := result.error or data.get("error") or (" ".join(errors) if data.get("valid") is False else ""):
            failed.append(f"{result.tool}: {reason}")
    return failed


def _list(turn_so_far: "TurnSoFar") -> ModelAnswer:
    tool, member = ("list_branches", "branches") if _BRANCHES.search(turn_so_far.prompt) else ("list_models", "models")
    if not turn_so_far.results_of(tool):
        return _call(turn_so_far, "I look what there is.", tool, {})
    found = _dicts(_data(turn_so_far, tool).get(member))
    names = ", ".join(map(_name_found, found[:_MAX_SHOWN]))
    if not found:
        return ModelAnswer(text=f"There are no {member}.")
    one = {"branches": "branch", "models": "model"}[member]
    return ModelAnswer(text=f"There {f'is 1 {one}' if len(found) == 1 else f'are {len(found)} {member}'}: {names}.")


def _name_found(found: dict[str, Any]) -> str:
    """Return what people call a model or a branch; of a branch that somebody has named also its own name."""
    title, name = found.get("title"), found.get("name")
    return f"“{title}” ({name})" if title and str(name).startswith("cr/") else f"“{title or name or found.get('id')}”"


def _add_field(turn_so_far: "TurnSoFar") -> ModelAnswer:
    wanted = _ADD_FIELD.search(turn_so_far.prompt)
    assert wanted is not None
    quoted = quoted_phrases(turn_so_far.prompt)
    named, of_model = _FIELD_NAME.search(wanted["rest"]), _OF_MODEL.search(wanted["rest"])
    name = _to_field_name(quoted[0] if quoted else named["name"] if named else "")
    if not name or of_model is None:
        return ModelAnswer(text="Which field, and of which model? Say it like: Add a date field “updated” to stories.")
    if not turn_so_far.results_of("list_models"):
        return _call(turn_so_far, "I look at the models.", "list_models", {})
    if written := _data(turn_so_far, "save_model"):
        return ModelAnswer(text=f"The field {name} is there. {_describe_write(written)}")
    models = _dicts(_data(turn_so_far, "list_models").get("models"))
    model = next((one for one in models if _is_called(one, of_model["model"])), None)
    if model is None:
        known = ", ".join(str(one.get("id")) for one in models[:_MAX_SHOWN])
        return ModelAnswer(text=f"There is no model “{of_model['model']}”. There are: {known}.")
    kind = next((one for one in _TYPES if re.search(rf"\b{one}\b", wanted["kind"], re.I)), "string")
    definition = {"type": kind} | ({"required": True} if re.search(r"\brequired\b", wanted["kind"], re.I) else {})
    own = {member: model[member] for member in ("id", "kind", "domain")}
    tool_input = {**own, "name": model.get("title") or model["id"], "fields": {name: definition}}
    return _call(turn_so_far, f"I add the field {name} to {model['id']}.", "save_model", tool_input)


def _change_value(turn_so_far: "TurnSoFar") -> ModelAnswer:
    quoted, wanted = quoted_phrases(turn_so_far.prompt), _CHANGE.search(turn_so_far.prompt)
    if len(quoted) < 2 or wanted is None:
        return ModelAnswer(text="Say it like: Change the price of “Rye bread” to “5.8”.")
    step = _read_entry(turn_so_far, quoted[0])
    if step is not None:
        return step
    if written := _data(turn_so_far, "save_content"):
        return ModelAnswer(text=f"The {wanted['field']} of “{quoted[0]}” is “{quoted[1]}”. {_describe_write(written)}")
    entry, name = _data(turn_so_far, "brain_query"), wanted["field"].lower()
    fields = entry.get("data") or {}
    if name not in fields:
        return ModelAnswer(text=f"It has no {name}. It has: {', '.join(fields)}.")
    is_number = isinstance(fields[name], (int, float)) and re.fullmatch(r"-?\d{1,12}(?:\.\d{1,6})?", quoted[1])
    value = float(quoted[1]) if is_number else quoted[1]
    return _save(turn_so_far, f"I change the {name}.", entry["locale"], {name: value})


def _translate(turn_so_far: "TurnSoFar") -> ModelAnswer:
    quoted, locale = quoted_phrases(turn_so_far.prompt), _find_locale(turn_so_far.prompt)
    name = quoted[0] if quoted else _find_open_entry(turn_so_far).get("entryId", "")
    if not name or not locale:
        return ModelAnswer(text="Which entry, and to which language? Say it like: Translate “Rye bread” to German.")
    step = _read_entry(turn_so_far, name, with_terms=True)
    if step is not None:
        return step
    if written := _data(turn_so_far, "save_content"):
        done = f"“{name}” has a text in {locale} now: the terms of the vocabulary are translated, the rest is not."
        return ModelAnswer(text=f"{done} {_describe_write(written)}")
    entry, terms = _data(turn_so_far, "brain_query"), _data(turn_so_far, "vocabulary").get("terms") or {}
    if entry.get("locale") == locale:
        return ModelAnswer(text=f"“{name}” is in {locale} already.")
    translated = translate_fields(entry.get("data") or {}, terms, str(entry.get("locale")), locale)
    return _save(turn_so_far, f"I write it in {locale}, as far as the vocabulary goes.", locale, translated)


def _read_entry(turn_so_far: "TurnSoFar", name: str, *, with_terms: bool = False) -> ModelAnswer | None:
    """Return the call that finds the named entry, or the one that reads it; None when it has been read."""
    if turn_so_far.results_of("brain_query"):
        return None
    terms: list[tuple[str, dict[str, Any]]] = [("vocabulary", {})] if with_terms else []
    is_open = not quoted_phrases(turn_so_far.prompt)
    if not is_open and not turn_so_far.results_of("brain_search"):
        return _call_all(turn_so_far, f"I look for “{name}”.", [("brain_search", {"query": name, "limit": 5}), *terms])
    found = _find_entry(turn_so_far)
    if not found:
        return ModelAnswer(text=f"I found no entry with “{name}”.")
    wanted = {"model": found["modelId"], "entryId": found["entryId"]}
    locale = {} if found.get("locale") in (None, "data") else {"locale": found["locale"]}
    return _call_all(turn_so_far, "I read it.", [("brain_query", wanted | locale), *(terms if is_open else [])])


def _find_entry(turn_so_far: "TurnSoFar") -> Mapping[str, Any]:
    """Return the entry that was found; of a prompt that names none, the one that is open. Empty if there is none."""
    if not turn_so_far.results_of("brain_search"):
        return _find_open_entry(turn_so_far)
    found = _dicts(_data(turn_so_far, "brain_search").get("results"))
    return found[0] if found else {}


def _find_open_entry(turn_so_far: "TurnSoFar") -> dict[str, str]:
    """Return the model and the id of the entry that the user has open; empty without one."""
    found = {name: pattern.search(turn_so_far.context) for name, pattern in _OPEN.items()}
    says = {name: match[1] for name, match in found.items() if match}
    return says if {"modelId", "entryId"} <= says.keys() else {}


def _save(turn_so_far: "TurnSoFar", text: str, locale: str, fields: dict[str, Any]) -> ModelAnswer:
    entry, found = _data(turn_so_far, "brain_query"), _find_entry(turn_so_far)
    tool_input: dict[str, Any] = {"model": entry["modelId"], "locale": locale, "data": fields}
    if entry["kind"] == "collection":
        tool_input["data"] = {entry["entryId"]: fields}
    elif entry["kind"] == "document":
        own = {name: value for name, value in fields.items() if name != "body"}
        body = {"body": fields["body"]} if "body" in fields else {}
        tool_input |= {"slug": found["entryId"], "data": own, **body}
    return _call(turn_so_far, text, "save_content", tool_input)


def _decide(turn_so_far: "TurnSoFar") -> ModelAnswer:
    wanted = _DECIDE.search(turn_so_far.prompt)
    assert wanted is not None
    is_merge = wanted["what"].lower() != "reject"
    tool = "merge_branch" if is_merge else "reject_branch"
    if decided := _data(turn_so_far, tool):
        return ModelAnswer(text=f"Done: {decided.get('branch')} is {'merged' if is_merge else 'rejected'}.")
    if not turn_so_far.results_of("list_branches"):
        return _call(turn_so_far, "I look what waits.", "list_branches", {})
    waiting, prompt = _dicts(_data(turn_so_far, "list_branches").get("branches")), turn_so_far.prompt.lower()
    named = [one for one in waiting if str(one.get("title") or one["name"]).lower() in prompt or one["name"] in prompt]
    chosen = named or waiting
    if not chosen:
        return ModelAnswer(text="Nothing waits to be merged.")
    if len(chosen) > 1:
        return ModelAnswer(text=f"Which one? There wait: {', '.join(map(_name_found, chosen[:_MAX_SHOWN]))}.")
    verb = "merge" if is_merge else "reject"
    return _call(turn_so_far, f"I {verb} {_name_found(chosen[0])}.", tool, {"branch": str(chosen[0]["name"])})


def _describe_write(written: dict[str, Any]) -> str:
    return "It is live." if written.get("merged") else f"It waits for a review in {written.get('reviewBranch')}."


def _find_locale(prompt: str) -> str:
    names = [match["name"].lower() for match in _LOCALE.finditer(prompt)]
    found = [_LANGUAGES.get(name) or (name if len(name) in (2, 5) else "") for name in names]
    return next((locale for locale in reversed(found) if locale), "")


def _is_called(model: dict[str, Any], name: str) -> bool:
    stems = {str(model.get(member) or "").lower() for member in ("id", "title")}
    wanted = name.lower()
    return bool(stems & {wanted, wanted.removesuffix("s"), wanted.removesuffix("ies") + "y"})


def _to_field_name(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_")[:60]


def _data(turn_so_far: "TurnSoFar", tool: str) -> dict[str, Any]:
    return _unwrap(turn_so_far.last_data_of(tool))


def _unwrap(data: Any) -> dict[str, Any]:
    """Return the data of a result, also of one that was shortened."""
    if isinstance(data, dict) and data.get("truncated") is True:
        data = data.get("data")
    return data if isinstance(data, dict) else {}


def _dicts(values: Any) -> list[dict[str, Any]]:
    return [value for value in values or () if isinstance(value, dict)]


def _call(turn_so_far: "TurnSoFar", text: str, tool: str, arguments: dict[str, Any]) -> ModelAnswer:
    return _call_all(turn_so_far, text, [(tool, arguments)])


def _call_all(turn_so_far: "TurnSoFar", text: str, calls: list[tuple[str, dict[str, Any]]]) -> ModelAnswer:
    if missing := [tool for tool, _ in calls if tool not in turn_so_far.tools]:
        return ModelAnswer(text=f"I would need {', '.join(missing)} for that, which I was not given.")
    tool_calls = tuple(ToolCall(turn_so_far.tools[tool]["name"], arguments) for tool, arguments in calls)
    return ModelAnswer(text=text, tool_calls=tool_calls)
