"""Answer prompts in a content workspace: find the document that the prompt names, read it, and report.

The steps are: list collections, list or search documents, read the named one. The only edit is another title. Ids come
from tool results, texts from the prompt.
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
_QUESTION = re.compile(
    r"\?|\b(?:what|which|who|list|show|read|find|search|look|how many|tell|about|summari[sz]e)\b|document|collection",
    re.I,
)
_STATUS = re.compile(r"\b(draft|unpublished|published|scheduled)s?\b", re.I)
_MAX_IGNORED_LETTERS = 3
"""Words of at most so many letters are ignored in names."""
_MAX_REPORT_CHARACTERS = 240


def answer_content_prompt(turn_so_far: "TurnSoFar", intent: Intent | None) -> ModelAnswer:
    if not isinstance(intent, ReplaceText) and not _QUESTION.search(turn_so_far.prompt):
        return ModelAnswer(text=f"You said: “{turn_so_far.prompt[:120]}”. {CONTENT_ABILITIES}")
    failed = [f"{result.tool}: {result.error}" for result in turn_so_far.results if result.error]
    if failed:
        return ModelAnswer(text=f"I could not look. {' · '.join(failed)}")
    return _next_step(turn_so_far, intent)


def _next_step(turn_so_far: "TurnSoFar", intent: Intent | None) -> ModelAnswer:
    if not turn_so_far.results_of("list_collections"):
        return _call(turn_so_far, "I look at the collections.", "list_collections", {})
    if not (turn_so_far.results_of("list_documents") or turn_so_far.results_of("search_documents")):
        return _find_documents(turn_so_far) or ModelAnswer(text=_describe_collections(turn_so_far))
    document = _named_document(turn_so_far)
    if document is None:
        return ModelAnswer(text=_describe_documents(turn_so_far))
    if not turn_so_far.results_of("get_document"):
        return _call(
            turn_so_far,
            f"I read “{document.get('title') or document['slug']}”.",
            "get_document",
            {"documentId": document["id"]},
        )
    if isinstance(intent, ReplaceText) and "set_document_field" in turn_so_far.tools:
        tool_input = {"documentId": document["id"], "fieldId": "title", "value": intent.new}
        return _call(turn_so_far, "I change its title.", "set_document_field", tool_input)
    return ModelAnswer(text=_describe_document(turn_so_far.last_data_of("get_document").get("document") or {}))


def _find_documents(turn_so_far: "TurnSoFar") -> ModelAnswer | None:
    """List the documents of the named collection, or search for the quoted words."""
    names = quoted_phrases(turn_so_far.prompt)
    collection = _named_collection(turn_so_far)
    if collection is not None and "list_documents" in turn_so_far.tools:
        status = _STATUS.search(turn_so_far.prompt)
        wanted = {"status": status[1].lower()} if status else {}
        tool_input = {"tableId": collection["id"]} | wanted
        return _call(turn_so_far, f"I list {collection['label']}.", "list_documents", tool_input)
    if names and "search_documents" in turn_so_far.tools:
        return _call(turn_so_far, f"I search for “{names[0]}”.", "search_documents", {"query": _slug(names[0])})
    return None


def _named_collection(turn_so_far: "TurnSoFar") -> dict[str, Any] | None:
    prompt_stems = {_stem(word) for word in _words(re.sub(r"[“\"].*?[”\"]", " ", turn_so_far.prompt))}
    collections = turn_so_far.last_data_of("list_collections").get("collections") or []
    return next(
        (
            collection
            for collection in collections
            if {_stem(word) for word in _words(collection["slug"])} <= prompt_stems
        ),
        None,
    )


def _named_document(turn_so_far: "TurnSoFar") -> dict[str, Any] | None:
    """Get the document most of whose name is in the prompt, if that is at least half of it."""
    documents = (
        turn_so_far.last_data_of("list_documents").get("documents")
        or turn_so_far.last_data_of("search_documents").get("results")
        or []
    )
    prompt_words = set(_words(turn_so_far.prompt))
    shares = [
        (len(prompt_words & set(_words(document["slug"]))) / max(1, len(_words(document["slug"]))), document)
        for document in documents
    ]
    best = max(shares, key=lambda share: share[0], default=(0.0, None))
    return best[1] if best[0] >= 0.5 else None


def _call(turn_so_far: "TurnSoFar", text: str, tool: str, tool_input: dict[str, Any]) -> ModelAnswer:
    return ModelAnswer(text=text, tool_calls=(ToolCall(turn_so_far.tools[tool]["name"], tool_input),))


def _describe_collections(turn_so_far: "TurnSoFar") -> str:
    collections = turn_so_far.last_data_of("list_collections").get("collections") or []
    descriptions = ", ".join(f"{collection['label']} ({collection['rowCount']})" for collection in collections)
    return f"There are {len(collections)} collections: {descriptions}." if collections else "There are no collections."


def _describe_documents(turn_so_far: "TurnSoFar") -> str:
    listing, search = turn_so_far.last_data_of("list_documents"), turn_so_far.last_data_of("search_documents")
    documents = listing.get("documents") or search.get("results") or []
    descriptions = "; ".join(
        f"{document.get('title') or document['slug']} ({document['status']})" for document in documents
    )
    total = listing.get("total", len(documents))
    return f"I found {total}: {descriptions}." if documents else "I found nothing of that kind."


def _describe_document(document: dict[str, Any]) -> str:
    fields = document.get("fields") or {}
    texts = [value for name, value in fields.items() if isinstance(value, str) and name not in ("title", "slug")]
    text = max(texts, key=len, default="nothing")
    description = f"“{document.get('title')}” is {document.get('status')}. It says: {text}"
    return description if len(description) <= _MAX_REPORT_CHARACTERS else description[:_MAX_REPORT_CHARACTERS] + "…"


def _words(text: str) -> list[str]:
    return [word for word in re.split(r"[^\w]+", text.lower()) if len(word) > _MAX_IGNORED_LETTERS or word.isdigit()]


def _stem(word: str) -> str:
    return word.removesuffix("s")


def _slug(text: str) -> str:
    return " ".join(re.split(r"[^\w]+", text.lower())).strip()
