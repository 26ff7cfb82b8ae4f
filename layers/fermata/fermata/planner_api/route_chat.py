"""Decide what a chat asks for: a turn, or what becomes of the plan that waits in the session."""

import hashlib
from collections.abc import Callable
from functools import partial
from typing import Any

from fermata.aws.lazy_snapshot import LazySnapshot
from fermata.aws.resources import Resources
from fermata.domain.blocks import TextBlock
from fermata.domain.caller import Caller
from fermata.domain.errors import Conflict, InvalidRequest
from fermata.domain.value_dataclass import value_dataclass
from fermata.planner_api.sessions import PLANNER_SCOPE, read_object
from fermata.plans.drafts.draft_rows import DraftLocation
from fermata.plans.drafts.draft_store import load_draft
from fermata.plans.drafts.multi_step_request import PlanChain, drop_chain, load_chain, require_chain
from fermata.plans.drafts.pending_plan import NO_PENDING_PLAN, load_pending_plan
from fermata.turns.approvals.decide_held_plan import apply_held_plan, discard_held_plan
from fermata.turns.start.commit_start import StartedTurn
from fermata.turns.start.idempotency import find_started_turn
from fermata.turns.start.turn_prompt import TurnPrompt
from fermata.wire.bodies.planner_requests import PlannerChatBody, SiteNotesBody
from fermata.wire.http.routing import RequestContext
from fermata.wire.renderers.planner_result import build_result

WAITING_STEP = "The plan of the last step waits. Apply it or discard it first."


@value_dataclass(frozen=True)
class ChatAnswer:
    """What a chat is answered without a turn: an HTTP status, and the result."""

    status: int
    result: dict[str, Any]


def _digest_chat(location: DraftLocation, body: PlannerChatBody) -> str:
    """Identify a request by what was sent, because the draft and the chain that it is read with go on."""
    return hashlib.sha256(f"{location.conversation}\n{body.model_dump_json(by_alias=True)}".encode()).hexdigest()


def answer_chat(
    resources: Resources, caller: Caller, location: DraftLocation, body: PlannerChatBody, idempotency_key: str
) -> StartedTurn | ChatAnswer | None:
    """Return the turn of a chat that was sent before under the same key, or apply or drop the plan that waits.

    The turn is looked for before anything else: the plan that waits now may be the one that the chat has made, and the
    step of a chain that is next may be the one after it (decision 0392). It is looked for again where the other one of
    two requests that came at once may have been faster.

    Args:
        resources: Of the process.
        caller: The user of the session.
        location: The draft of the session.
        body: The request.
        idempotency_key: The same for every repetition of the request; empty for one that is not repeated.

    Returns:
        The turn, or an answer; None where a turn has to be started.

    Raises:
        Conflict: The key was used for another request.
        InvalidRequest: There is nothing to plan.
        Forbidden: The policies want another person to decide about the plan.
    """
    find_twin = partial(find_started_turn, resources, caller, idempotency_key, _digest_chat(location, body))
    if started := find_twin():
        return started
    match body.execution_mode:
        case "apply_pending_plan":
            return _apply(resources, caller, location, body, find_twin)
        case "discard_pending_plan":
            return _answer_conflicts(lambda: _discard(resources, caller, location, body.pending_plan_id or ""))
        case "continue_chain":
            refusal = _check_chain(resources, location, body)
            return (find_twin() or refusal) if refusal else None
        case _:
            if not body.message.strip():
                raise InvalidRequest("message is required")
            return None


def _check_chain(resources: Resources, location: DraftLocation, body: PlannerChatBody) -> ChatAnswer | None:
    """Refuse to go on with a chain that is not there, or whose last plan still waits. Its next step is a turn."""
    try:
        require_chain(resources, location, body.continuation_chain_id or "")
    except Conflict as conflict:
        return ChatAnswer(409, _describe_problem("validation_error", conflict.message))
    if load_pending_plan(resources, location) is not None:
        return ChatAnswer(409, _describe_problem("validation_error", WAITING_STEP))
    return None


def _apply(
    resources: Resources,
    caller: Caller,
    location: DraftLocation,
    body: PlannerChatBody,
    find_twin: Callable[[], StartedTurn | None],
) -> StartedTurn | ChatAnswer | None:
    plan_id = body.pending_plan_id
    if not plan_id:
        pending = load_pending_plan(resources, location)
        if pending is None:
            if body.message.strip():
                return None  # planned afresh
            return ChatAnswer(409, _describe_problem("needs_clarification", NO_PENDING_PLAN))
        if started := find_twin():
            return started  # what waits is its plan, which nobody has seen
        plan_id = pending.id
    return _answer_conflicts(lambda: _apply_plan(resources, caller, location, plan_id))


def _apply_plan(resources: Resources, caller: Caller, location: DraftLocation, plan_id: str) -> dict[str, Any]:
    outcome = apply_held_plan(resources, caller, location, plan_id)
    chain = load_chain(resources, location)
    going_on = {"continuation": chain.to_continuation()} if chain else {}
    return build_result(outcome.to_wire(), "") | {"plannerSource": "pending"} | going_on


def _discard(resources: Resources, caller: Caller, location: DraftLocation, plan_id: str) -> dict[str, Any]:
    plan = discard_held_plan(resources, caller, location, plan_id)
    if plan is None and not plan_id:
        drop_chain(resources, location)
    summary = "The plan was discarded." if plan else "There was no plan to discard."
    return _describe_problem("canceled", summary)


def _answer_conflicts(act: Callable[[], dict[str, Any]]) -> ChatAnswer:
    try:
        return ChatAnswer(200, act())
    except Conflict as conflict:
        return ChatAnswer(409, _describe_problem("validation_error", conflict.message))


def _describe_problem(status: str, summary: str) -> dict[str, Any]:
    """Return a result that names no changes. `error` is what every refusal of the API has."""
    problem = {} if status == "canceled" else {"error": summary}
    return {"status": status, "summary": summary, "changes": [], "mentionedSlugs": [], "suggestions": [], **problem}


def build_prompt(
    context: RequestContext, location: DraftLocation, body: PlannerChatBody, *, idempotency_key: str = ""
) -> TurnPrompt:
    """Return the prompt of a chat, with what the editor shows as its snapshot.

    Args:
        context: The request.
        location: The draft of the session.
        body: The request's body.
        idempotency_key: The same for every repetition of the request; empty for one that is not repeated.

    Raises:
        InvalidRequest: A member that holds JSON is none.
        Conflict: The chain that is to go on is gone.
    """
    limits = context.tenant.limits
    chain = _find_chain(context.resources, location, body)
    message = chain.remaining[0] if chain else body.message.strip()
    snapshot = _build_snapshot(context.resources, location, body) | (_describe_step(chain) if chain else {})
    return TurnPrompt(
        scope=PLANNER_SCOPE,
        conversation_id=location.conversation,
        content=(TextBlock(text=message),),
        dialect="fermata",
        snapshot=LazySnapshot.from_value(snapshot),
        idempotency_key=idempotency_key,
        sent_digest=_digest_chat(location, body) if idempotency_key else "",
        max_rounds=limits.max_rounds,
        thinking_tokens=limits.thinking_tokens,
        limits=context.caller_limits,
        body_bytes=len(context.request.body),
        interrupts=body.when_busy == "interrupt",
        authorization=context.authorization,
    )


def _find_chain(resources: Resources, location: DraftLocation, body: PlannerChatBody) -> PlanChain | None:
    """Return the chain whose next step is asked for; None for a message of the user."""
    if body.execution_mode != "continue_chain":
        return None
    return require_chain(resources, location, body.continuation_chain_id or "")


def _describe_step(chain: PlanChain) -> dict[str, Any]:
    return {"message": chain.remaining[0], "chainId": chain.id, "chainStep": chain.step + 1}


def _build_snapshot(resources: Resources, location: DraftLocation, body: PlannerChatBody) -> dict[str, Any]:
    draft = load_draft(resources, location).draft
    page = draft.find_page(body.slug)
    capabilities = read_object(body.site_capabilities, "siteCapabilities")
    allows = capabilities.get("allowStructuralEdits") is not False if isinstance(capabilities, dict) else True
    snapshot = {
        "slug": body.slug,
        "message": body.message,
        "locale": body.locale,
        "onlyPlan": body.execution_mode == "plan_only",
        "allowStructure": allows,
        "activeBlockId": body.active_block_id,
        "activeBlockType": body.active_block_type,
        "activeEditablePath": body.active_editable_path,
        "notes": read_site_notes(body),
        "blockTypes": _list_block_types(read_object(body.components_manifest, "componentsManifest")),
        "pages": [{"slug": one.slug, "title": one.title} for one in draft.pages],
        "page": page.to_wire() if page else None,
    }
    return {name: value for name, value in snapshot.items() if value is not None}


def read_site_notes(body: SiteNotesBody) -> dict[str, Any]:
    """Return what an editor says about its site, by name.

    Raises:
        InvalidRequest: A member that holds JSON is none.
    """
    notes = {name: read_object(getattr(body, name), name) for name in _NOTES}
    return {name: note for name, note in notes.items() if note}


_NOTES = ("site_purpose", "site_hosting", "business_context", "site_context")


def _list_block_types(manifest: Any) -> list[str]:
    components = manifest.get("components") if isinstance(manifest, dict) else None
    if not isinstance(components, list):
        return []
    return [one["type"] for one in components if isinstance(one, dict) and isinstance(one.get("type"), str)]
