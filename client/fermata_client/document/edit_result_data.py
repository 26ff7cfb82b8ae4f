"""Summarize an edit for the model, in the members of a tool result's `data`."""

from collections.abc import Iterable

from fermata_client.css.merge import RuleCounts
from fermata_client.html.fragment import HtmlFragment
from fermata_client.html.tree import Element
from fermata_client.service.json_types import JsonObject

MODULE_BY_TAG = {
    "a": "base.link",
    "button": "base.button",
    "form": "base.form",
    "img": "base.image",
    "input": "base.input",
    "label": "base.label",
    "ol": "base.list",
    "option": "base.option",
    "select": "base.select",
    "svg": "base.svg",
    "textarea": "base.textarea",
    "ul": "base.list",
    "video": "base.video",
    **dict.fromkeys(
        ("h1", "h2", "h3", "h4", "h5", "h6", "p", "span", "strong", "em", "small", "blockquote"), "base.text"
    ),
}
"""The site editor's module that an element corresponds to."""
CONTAINER_MODULE = "base.container"


def created_elements_to_wire(elements: Iterable[Element]) -> list[JsonObject]:
    return [
        {
            "id": element.uid,
            "moduleId": MODULE_BY_TAG.get(element.tag, CONTAINER_MODULE),
            "classes": element.classes,
        }
        for element in elements
    ]


def rule_counts_to_wire(counts: RuleCounts) -> dict[str, int]:
    members = {"cssRulesCreated": counts.created, "cssRulesUpdated": counts.updated}
    return {**members, "cssRulesKept": counts.kept} if counts.kept else members


def note_to_wire(fragment: HtmlFragment) -> dict[str, str]:
    return {"note": fragment.note} if fragment.note else {}
