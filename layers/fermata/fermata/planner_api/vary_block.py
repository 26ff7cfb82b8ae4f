"""Handle requests for variations of a block. The draft stays as it is: the user applies one by its patch."""

import hashlib
import json
from typing import Any

from fermata.conversations.conversation_store import get_conversation
from fermata.domain.errors import InvalidRequest, NotFound, Unprocessable
from fermata.domain.one_shot_generation import GenerateRequest
from fermata.domain.run_settings import OutputFormat
from fermata.planner_api.route_chat import read_site_notes
from fermata.planner_api.sessions import PLANNER_SCOPE, count_prompt, find_session
from fermata.plans.block_variations import (
    BlockVariation,
    build_variation_prompt,
    build_variation_schema,
    count_wanted_variations,
    read_variations,
)
from fermata.plans.drafts.draft_store import load_draft
from fermata.plans.page_model import PageBlock, SiteDraft
from fermata.turns.generate.answer_request import answer_generate_request
from fermata.wire.bodies.planner_requests import VariationsBody
from fermata.wire.http.messages import EVENT_STREAM, Response
from fermata.wire.http.routing import RequestContext

NO_BLOCK = "There is no such block in this session."
NO_VARIATIONS = "The model has written no variation that can be applied. Say more exactly what is to be different."


def vary_block(context: RequestContext) -> Response:
    """Respond with variations of a block."""
    return Response(200, _make_variations(context))


def stream_variations(context: RequestContext) -> Response:
    """Respond with the same as server-sent events. They are sent together, since no image is waited for."""
    ready = {"event": "variations_ready", "imagesPending": False, **_make_variations(context)}
    frames = "".join(f"data: {json.dumps(frame, ensure_ascii=False)}\n\n" for frame in (ready, {"event": "done"}))
    return Response(200, raw_body=frames.encode(), headers={"Content-Type": EVENT_STREAM})


def _make_variations(context: RequestContext) -> dict[str, Any]:
    body = context.parse_body(VariationsBody)
    resources, caller = context.resources, context.caller
    location = find_session(resources, caller, body.session, body.site_id)
    draft = load_draft(resources, location).draft if location else SiteDraft()
    slug, block = _find_block(draft, body.slug, body.active_block_id)
    count = count_wanted_variations(body.message)
    system, prompt = build_variation_prompt(block, body.message.strip(), count, read_site_notes(body))
    conversation = get_conversation(resources, caller, location.conversation) if location else None
    asked = GenerateRequest(
        messages=(("user", prompt),),
        system=system,
        scope=PLANNER_SCOPE,
        credential=(conversation.credential_id or "") if conversation else "",
        model=(conversation.model_id or "") if conversation else "",
        output=OutputFormat(name="variations", json_schema=build_variation_schema(block, count)),
    )
    count_prompt(context)
    answer = answer_generate_request(resources, caller, asked)
    variations = read_variations(block, answer["object"], count)
    if not variations:
        raise Unprocessable(NO_VARIATIONS)
    return {
        "status": "ok",
        "summary": f"{len(variations)} variations of {block.type}.",
        "blockId": block.id,
        "blockType": block.type,
        "pageSlug": slug,
        "baseProps": block.props,
        "variations": [_describe_variation(variation) for variation in variations],
        "plannerSource": "llm",
        "usage": answer["usage"],
    }


def _find_block(draft: SiteDraft, slug: str, block_id: str) -> tuple[str, PageBlock]:
    """Return the block and its page: the one that the user has open, or else another one that has the block."""
    pages = sorted(draft.pages, key=lambda page: page.slug != slug)
    for page in pages:
        block = page.find_block(block_id)
        if block is not None:
            if not block.props:
                raise InvalidRequest("This block has no props that could vary.")
            return page.slug, block
    raise NotFound(NO_BLOCK)


def _describe_variation(variation: BlockVariation) -> dict[str, Any]:
    digest = hashlib.sha256(json.dumps(variation.patch, sort_keys=True).encode()).hexdigest()
    return {
        "id": f"var_{digest[:16]}",
        "title": variation.title,
        "summary": variation.summary,
        "patch": variation.patch,
        "changedKeys": list(variation.patch),
    }
