"""Answer prompts about a site in the content store: list pages and posts, create one, add it to the navigation."""

import re
from typing import TYPE_CHECKING, Any

from local.demo_model.model_answer import ModelAnswer, ToolCall
from local.demo_model.rules.intents import quoted_phrases

if TYPE_CHECKING:
    from local.demo_model.rules.next_answer import TurnSoFar

CMS_TOOLS = (
    *("cms_getPages", "cms_getPosts", "cms_listSectionDefs", "cms_createPage", "cms_createPageWithContent"),
    *("cms_createPost", "cms_addNavigationItem"),
)
CMS_ABILITIES = (
    'I can list what there is ("Which pages are there?"), create a page ("Create a page “About us” with a hero '
    'section") or a post ("Write a post “Open on Sundays”"), and link one ("Add “About us” to the navigation").'
)
_CREATE = re.compile(
    r"\b(?:add|create|make|write|start|build|draft)\b.*?\b(?P<what>page|post|article)\b(?P<rest>.*)", re.I | re.S
)
_NAMED = re.compile(
    r"^\s*(?:called|named|titled|about|for|on|with the title)?\s+(?P<name>[\w][\w' -]*?)(?: with\b| that\b|[.,;!?]|$)",
    re.I,
)
_NAVIGATION = re.compile(
    r"\b(?:add|put)\b(?P<name>.+?)\b(?:to|into|in) the (?:navigation|menu|header|footer)", re.I | re.S
)
_LIST = re.compile(r"\b(?:which|what|list|show|how many)\b.*?\b(?P<what>page|post|article)s\b", re.I | re.S)
_SECTION = re.compile(r"\bwith (?:an?|the|some) (?P<name>[\w -]+?) section", re.I)
_POSTS = "post"
_MAX_SLUG = 64


def answer_cms_prompt(turn_so_far: "TurnSoFar") -> ModelAnswer:
    """Return the next call for a prompt, or what became of the calls."""
    prompt = turn_so_far.prompt
    if failed := [f"{result.tool}: {result.error}" for result in turn_so_far.results if result.error]:
        return ModelAnswer(text=f"That did not work. {' · '.join(failed)}")
    if listed := _LIST.search(prompt):
        return _list(turn_so_far, "cms_getPages" if listed["what"].lower() == "page" else "cms_getPosts")
    if (link := _NAVIGATION.search(prompt)) and "cms_addNavigationItem" in turn_so_far.tools:
        return _add_to_navigation(turn_so_far, _read_name(link["name"], quoted_phrases(prompt)))
    if not (wanted := _CREATE.search(prompt)):
        return ModelAnswer(text=f"You said: “{prompt[:120]}”. {CMS_ABILITIES}")
    named = _NAMED.search(wanted["rest"])
    name = _read_name(named["name"] if named else f"New {wanted['what']}", quoted_phrases(prompt))
    return _create_page(turn_so_far, name) if wanted["what"].lower() == "page" else _create_post(turn_so_far, name)


def _read_name(text: str, quoted: list[str]) -> str:
    name = " ".join((quoted[0] if quoted else re.sub(r"^\s*(?:the|our|a)\b", "", text)).split())
    return name[:1].upper() + name[1:]


def _create_page(turn_so_far: "TurnSoFar", name: str) -> ModelAnswer:
    if created := turn_so_far.last_data_of("cms_createPageWithContent") or turn_so_far.last_data_of("cms_createPage"):
        return ModelAnswer(text=f"Done: {created.get('message', 'the page is there')}.")
    section = _SECTION.search(turn_so_far.prompt)
    if section is None or "cms_createPageWithContent" not in turn_so_far.tools:
        return _call(
            turn_so_far, f"I create the page “{name}”.", "cms_createPage", {"name": name, "slug": _to_slug(name)}
        )
    if not turn_so_far.results_of("cms_listSectionDefs"):
        return _call(turn_so_far, "I look at the sections that there are.", "cms_listSectionDefs", {})
    definition = _find_definition(turn_so_far, section["name"])
    if definition is None:
        return ModelAnswer(text=f"This site has no section called “{section['name']}”, so I have created nothing.")
    page = {"name": name, "slug": _to_slug(name), "sections": [{"sectionKey": definition, "content": {}}]}
    return _call(turn_so_far, f"I create the page “{name}”.", "cms_createPageWithContent", page)


def _find_definition(turn_so_far: "TurnSoFar", name: str) -> str | None:
    definitions = turn_so_far.last_data_of("cms_listSectionDefs").get("sectionDefs") or []
    keys = [str(definition["key"]) for definition in definitions]
    return next((key for key in keys if key.lower() == name.lower().replace(" ", "-")), None)


def _create_post(turn_so_far: "TurnSoFar", name: str) -> ModelAnswer:
    if created := turn_so_far.last_data_of("cms_createPost"):
        return ModelAnswer(text=f"Done: {created.get('message', 'the post is there')}.")
    post = {
        "collectionSlug": _POSTS,
        "slug": _to_slug(name),
        "title": name,
        "content": {"body": f"A first draft about “{name}”."},
    }
    return _call(turn_so_far, f"I write the post “{name}”.", "cms_createPost", post)


def _add_to_navigation(turn_so_far: "TurnSoFar", name: str) -> ModelAnswer:
    if turn_so_far.results_of("cms_addNavigationItem"):
        return ModelAnswer(text=f"Done: “{name}” is in the navigation.")
    item = {"label": name, "href": f"/pages/{_to_slug(name)}", "location": "header"}
    return _call(turn_so_far, f"I add “{name}” to the navigation.", "cms_addNavigationItem", item)


def _list(turn_so_far: "TurnSoFar", tool: str) -> ModelAnswer:
    if not turn_so_far.results_of(tool):
        arguments = {"collectionSlug": _POSTS, "status": "all"} if tool == "cms_getPosts" else {}
        return _call(turn_so_far, "I look what there is.", tool, arguments)
    data = turn_so_far.last_data_of(tool)
    found = data.get("pages") or data.get("posts") or []
    names = ", ".join(f"“{one.get('name') or one.get('title')}”" for one in found[:20])
    return ModelAnswer(text=f"There are {len(found)}: {names}." if found else "There are none yet.")


def _to_slug(name: str) -> str:
    slug = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:_MAX_SLUG].strip("-")
    return slug if len(slug) > 1 else "page"


def _call(turn_so_far: "TurnSoFar", text: str, tool: str, arguments: dict[str, Any]) -> ModelAnswer:
    if tool not in turn_so_far.tools:
        return ModelAnswer(text=f"I would need {tool} for that, which I was not given.")
    return ModelAnswer(text=text, tool_calls=(ToolCall(turn_so_far.tools[tool]["name"], arguments),))
