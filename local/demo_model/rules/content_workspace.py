"""What the demo model does in a content workspace: it looks for what was asked about, reads it, and says what it read.

Collections → the documents of the one that was named, or a search → the document that was named. The one edit it knows
is another title. Ids come from results, words from the prompt.
"""

import re
from typing import TYPE_CHECKING, Any

from local.demo_model.model_answer import ModelAnswer, ToolCall
from local.demo_model.rules.intents import Intent, ReplaceText, quoted_phrases

if TYPE_CHECKING:
    from local.demo_model.rules.next_answer import TurnSoFar

READ_TOOLS = (
    *("list_collections", "get_collection_schema", "list_documents", "get_document", "search_documents"),
    *("list_users", "list_media"),
)
WRITE_TOOLS = ("set_document_field",)
CONTENT_ABILITIES = (
    'I can list what there is ("Which collections are there?", "Which posts are drafts?"), read a document ("What does '
    '“Easter hours” say?") and change a title ("Change the title of “Our new flour” to “Flour from the mill”").'
)
_ASKS = re.compile(
    r"\?|\b(?:what|which|who|list|show|read|find|search|look|how many|tell|about|summari[sz]e)\b|document|collection",
    re.I,
)
_STATUS = re.compile(r"\b(draft|unpublished|published|scheduled)s?\b", re.I)
_SHORT = 3
"""Words of so few letters name nothing."""
_MOST_SAID = 240


def answer_content_prompt(now: "TurnSoFar", intent: Intent | None) -> ModelAnswer:
    if not isinstance(intent, ReplaceText) and not _ASKS.search(now.prompt):
        return ModelAnswer(text=f"You said: “{now.prompt[:120]}”. {CONTENT_ABILITIES}")
    failed = [f"{result.tool}: {result.error}" for result in now.results if result.error]
    if failed:
        return ModelAnswer(text=f"I could not look. {' · '.join(failed)}")
    return _next(now, intent)


def _next(now: "TurnSoFar", intent: Intent | None) -> ModelAnswer:
    if not now.results_of("list_collections"):
        return _call(now, "I look at the collections.", "list_collections")
    if not (now.results_of("list_documents") or now.results_of("search_documents")):
        return _find(now) or ModelAnswer(text=_collections_told(now))
    document = _named_document(now)
    if document is None:
        return ModelAnswer(text=_documents_told(now))
    if not now.results_of("get_document"):
        return _call(
            now, f"I read “{document.get('title') or document['slug']}”.", "get_document", documentId=document["id"]
        )
    if isinstance(intent, ReplaceText) and "set_document_field" in now.tools:
        given = {"documentId": document["id"], "fieldId": "title", "value": intent.new}
        return _call(now, "I change its title.", "set_document_field", **given)
    return ModelAnswer(text=_document_told(now.last_data_of("get_document").get("document") or {}))


def _find(now: "TurnSoFar") -> ModelAnswer | None:
    """The documents of the collection that is named; else those that have the words in quotation marks."""
    names = quoted_phrases(now.prompt)
    collection = _named_collection(now)
    if collection is not None and "list_documents" in now.tools:
        status = _STATUS.search(now.prompt)
        wanted = {"status": status[1].lower()} if status else {}
        return _call(now, f"I list {collection['label']}.", "list_documents", tableId=collection["id"], **wanted)
    if names and "search_documents" in now.tools:
        return _call(now, f"I search for “{names[0]}”.", "search_documents", query=_slug(names[0]))
    return None


def _named_collection(now: "TurnSoFar") -> dict[str, Any] | None:
    said = {_stem(word) for word in _words(re.sub(r"[“\"].*?[”\"]", " ", now.prompt))}
    found = now.last_data_of("list_collections").get("collections") or []
    return next((one for one in found if {_stem(word) for word in _words(one["slug"])} <= said), None)


def _named_document(now: "TurnSoFar") -> dict[str, Any] | None:
    """The one whose name the prompt has most of, and more than a word that many have."""
    found = (
        now.last_data_of("list_documents").get("documents") or now.last_data_of("search_documents").get("results") or []
    )
    said = set(_words(now.prompt))
    shares = [(len(said & set(_words(one["slug"]))) / max(1, len(_words(one["slug"]))), one) for one in found]
    best = max(shares, key=lambda share: share[0], default=(0.0, None))
    return best[1] if best[0] >= 0.5 else None


def _call(now: "TurnSoFar", text: str, tool: str, **given: Any) -> ModelAnswer:
    return ModelAnswer(text=text, tool_calls=(ToolCall(now.tools[tool]["name"], given),))


def _collections_told(now: "TurnSoFar") -> str:
    found = now.last_data_of("list_collections").get("collections") or []
    told = ", ".join(f"{one['label']} ({one['rowCount']})" for one in found)
    return f"There are {len(found)} collections: {told}." if found else "There are no collections."


def _documents_told(now: "TurnSoFar") -> str:
    listed, found = now.last_data_of("list_documents"), now.last_data_of("search_documents")
    documents = listed.get("documents") or found.get("results") or []
    told = "; ".join(f"{one.get('title') or one['slug']} ({one['status']})" for one in documents)
    total = listed.get("total", len(documents))
    return f"I found {total}: {told}." if documents else "I found nothing of that kind."


def _document_told(document: dict[str, Any]) -> str:
    fields = document.get("fields") or {}
    texts = [value for name, value in fields.items() if isinstance(value, str) and name not in ("title", "slug")]
    text = max(texts, key=len, default="nothing")
    said = f"“{document.get('title')}” is {document.get('status')}. It says: {text}"
    return said if len(said) <= _MOST_SAID else said[:_MOST_SAID] + "…"


def _words(text: str) -> list[str]:
    return [word for word in re.split(r"[^\w]+", text.lower()) if len(word) > _SHORT or word.isdigit()]


def _stem(word: str) -> str:
    return word.removesuffix("s")


def _slug(text: str) -> str:
    return " ".join(re.split(r"[^\w]+", text.lower())).strip()
