"""Read which operation is meant, whatever a model calls it and wherever it says so."""

import re
from typing import Any

from fermata.plans.normalization.plan_context import PlanContext, RawOperation
from fermata.plans.operations import OPERATION_CLASSES

_NO_LETTER = re.compile(r"[^a-z]")
NAME_MEMBERS = ("op", "operation", "action", "kind")
"""Members in which models name the operation; the first one that is there counts."""

_VERBS = {
    "add": ("add", "insert", "append"),
    "update": ("update", "edit", "change", "modify", "set", "patch"),
    "remove": ("remove", "delete", "drop"),
    "move": ("move", "reorder"),
    "duplicate": ("duplicate", "copy", "clone"),
    "create": ("create", "add", "new", "make"),
    "rename": ("rename",),
}
_NOUNS = {
    "block": ("block", "section", "component"),
    "item": ("item", "list_item", "entry"),
    "page": ("page", "route"),
}
_SPECIAL = {
    ("update", "block"): "update_props",
    ("update", "page"): "update_page_meta",
}
_WORDS = {
    "create": "create_page",
    "add": "add_block",
    "insert": "add_block",
    "update": "update_props",
    "edit": "update_props",
    "remove": "remove_block",
    "delete": "remove_block",
    "move": "move_block",
    "rename": "rename_page",
    "duplicate": "duplicate_block",
    "edit_props": "update_props",
    "set_props": "update_props",
    "change_props": "update_props",
    "patch_props": "update_props",
    "update_properties": "update_props",
    "update_block_props": "update_props",
    "change_slug": "rename_page",
    "update_slug": "rename_page",
    "update_meta": "update_page_meta",
    "update_seo": "update_page_meta",
    "set_page_meta": "update_page_meta",
    "update_config": "update_site_config",
    "update_site": "update_site_config",
    "set_site_config": "update_site_config",
}


def _build_synonyms() -> dict[str, str]:
    synonyms = dict(_WORDS)
    for verb, verbs in _VERBS.items():
        for noun, nouns in _NOUNS.items():
            operation = _SPECIAL.get((verb, noun), f"{verb}_{noun}")
            if operation in OPERATION_CLASSES:
                synonyms |= {f"{one}_{other}": operation for one in verbs for other in nouns}
    synonyms |= {operation: operation for operation in OPERATION_CLASSES}
    return {_squeeze(name): operation for name, operation in synonyms.items()}


def _squeeze(name: str) -> str:
    return _NO_LETTER.sub("", name.lower())


_SYNONYMS = _build_synonyms()


def find_operation_name(name: Any) -> str | None:
    """Return the operation that a name means, or None. Case, blanks, hyphens and underscores do not count."""
    return _SYNONYMS.get(_squeeze(name)) if isinstance(name, str) else None


def unwrap_operation(operation: RawOperation, _context: PlanContext) -> RawOperation:
    """Take an operation out of an object that has its name as the only member."""
    if any(operation.get(member) for member in NAME_MEMBERS):
        return operation
    for name, members in operation.items():
        canonical = find_operation_name(name)
        if canonical and isinstance(members, dict):
            others = {key: value for key, value in operation.items() if key != name}
            return {**others, **members, "op": canonical}
    return operation


def rename_operation(operation: RawOperation, _context: PlanContext) -> RawOperation:
    """Put the name of the operation into `op`. An unknown one stays, and the schema refuses it."""
    named = next((operation[member] for member in NAME_MEMBERS if operation.get(member)), None)
    if isinstance(named, dict):
        return unwrap_operation(named, _context)
    others = {key: value for key, value in operation.items() if key not in NAME_MEMBERS}
    return {"op": find_operation_name(named) or named, **others}
