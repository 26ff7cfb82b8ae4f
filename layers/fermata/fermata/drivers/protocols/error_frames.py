"""Recognise the errors that servers send in place of an event, however they name them (decisions 0195 and 0208)."""

from collections.abc import Mapping
from typing import Any

_ANSWER_MEMBERS = ("choices", "candidates", "delta", "response", "item", "content_block", "usage", "done", "output")
_WORD_MEMBERS = ("message", "detail", "msg", "error_msg", "error_message", "errorMessage", "title", "reason")
_CODE_MEMBERS = ("code", "status", "status_code", "statusCode", "error_code")
_PROGRESS = frozenset({
    "queued", "queue", "pending", "processing", "loading", "starting", "started", "running", "waiting", "in_progress",
    "progress", "info", "status", "ping", "keepalive", "heartbeat", "ok",
})  # fmt: skip
"""What servers call a state that is no error, with words about it."""
_SUCCESS_CODES = ("0", "200", "ok", "success")
"""Some gateways wrap each event, and say so where nothing has failed."""
_WEAK_WORD_MEMBERS = ("title", "reason")
"""Only an error beside a code."""


def name_unnamed_error(event: dict[str, Any]) -> dict[str, Any]:
    """Put an error without the member `error` under that name.

    No event of any protocol has words as its `message`, `detail` or the like, and none of the members of an answer.
    """
    has_answer = _has_answer(event)
    if has_answer and "error" not in event:  # nearly always
        return event
    if has_answer and _says_nothing(event["error"]):
        return {name: value for name, value in event.items() if name != "error"}
    if event.get("error"):
        return {"type": "error", **event}
    if has_answer:
        return event
    if _PROGRESS.intersection(str(event.get(name)).lower() for name in ("status", "type", "state")):
        return event
    inner = _find_inner_error(event)
    codes = [inner[name] for name in _CODE_MEMBERS if isinstance(inner.get(name), str | int)]
    if codes and all(str(code).lower() in _SUCCESS_CODES for code in codes):
        return event
    strong = {name: value for name, value in inner.items() if codes or name not in _WEAK_WORD_MEMBERS}
    if (words := find_error_words(strong)) or event.get("object") == "error":
        error = {**inner, "message": words} | ({"code": codes[0]} if codes else {})
        return {"type": "error", "error": error}
    return event


def _has_answer(event: dict[str, Any]) -> bool:
    """Return whether an event has a member of an answer. Written as a loop, because every event comes here."""
    for name in _ANSWER_MEMBERS:
        if event.get(name):
            return True
    return "done" in event and isinstance(event.get("message"), dict)  # a line of Ollama's


def _says_nothing(error: Any) -> bool:
    """Return whether an answer's member `error` is an object without code and words, as some servers always send."""
    return isinstance(error, dict) and not any(error.values())


def find_error_words(error: Mapping[str, Any]) -> str:
    """Return what an error says; empty for what says nothing in words."""
    for name in _WORD_MEMBERS:
        value = error.get(name)
        if isinstance(value, list):  # FastAPI lists what it does not accept
            value = "; ".join(find_error_words(member) for member in value if isinstance(member, dict))
        if isinstance(value, str) and value.strip():
            return value
    return ""


def _find_inner_error(event: dict[str, Any]) -> dict[str, Any]:
    """Return the object that describes the error, where the event only wraps it."""
    errors = event.get("errors")
    if isinstance(errors, list) and errors and isinstance(errors[0], dict):
        return errors[0]
    if isinstance(errors, list) and errors and isinstance(errors[0], str):
        return {"message": errors[0]}
    fault = event.get("fault")
    if isinstance(fault, dict):
        return {"message": fault.get("faultstring")}
    state = event.get("base_resp")
    if isinstance(state, dict) and state.get("status_code"):
        return {"message": state.get("status_msg"), "code": str(state["status_code"])}
    return event
