"""A small site that the tests of plans change."""

from typing import Any

from fermata.plans.apply_operations import AppliedOperations, apply_operations
from fermata.plans.operations import PLAN_OPERATIONS
from fermata.plans.page_model import Page, SiteDraft

NOW = "2026-01-01T00:00:00.000Z"
HOME = {
    "id": "p_home",
    "slug": "/",
    "title": "Home",
    "blocks": [
        {"id": "b_header", "type": "Header", "props": {}},
        {"id": "b_hero", "type": "Hero", "props": {"heading": "Welcome", "ctaHref": "/pricing"}},
        {"id": "b_cta", "type": "CTA", "props": {"title": "Start", "ctaHref": "/faq?x=1"}},
        {"id": "b_footer", "type": "Footer", "props": {}},
    ],
}
FAQ = {
    "id": "p_faq",
    "slug": "/faq",
    "title": "Questions",
    "blocks": [
        {"id": "b_faq", "type": "FAQAccordion", "props": {"items": [{"q": "q1", "a": "a1"}, {"q": "q2", "a": "a2"}]}},
        {"id": "b_text", "type": "RichText", "props": {"body": "See [prices](/pricing) and /pricing."}},
    ],
}
PRICING = {"id": "p_pricing", "slug": "/pricing", "title": "Pricing", "blocks": []}
SITE = SiteDraft(pages=tuple(Page.from_wire(page) for page in (HOME, FAQ, PRICING)))


def apply(*operations: dict[str, Any], draft: SiteDraft = SITE) -> AppliedOperations:
    return apply_operations(draft, PLAN_OPERATIONS.validate_python(operations), NOW)


def list_block_ids(draft: SiteDraft, slug: str) -> list[str]:
    page = draft.find_page(slug)
    assert page is not None
    return [block.id for block in page.blocks]


def read_props(draft: SiteDraft, slug: str, block_id: str) -> dict[str, Any]:
    page = draft.find_page(slug)
    block = page.find_block(block_id) if page else None
    assert block is not None
    return block.props
