"""Hold what a candidate is normalized against: the pages, the page that the user sees, and the user's words."""

from dataclasses import field
from functools import cached_property
from typing import Any

from fermata.domain.value_dataclass import value_dataclass
from fermata.plans.page_model import Page, PageBlock
from fermata.plans.slugs import list_mentioned_slugs
from fermata.plans.user_intent import split_words

RawOperation = dict[str, Any]
"""An operation as JSON, on its way to a valid one."""


@value_dataclass(frozen=True)
class PlanContext:
    """What a plan is about.

    Attributes:
        default_slug: The page that the user sees.
        pages: The pages that are known, at least the one that the user sees.
        message: What the user has asked for.
        now: The ISO instant of a new page.
    """

    default_slug: str
    pages: tuple[Page, ...] = ()
    message: str = ""
    now: str = ""
    taken_ids: set[str] = field(default_factory=set)
    """Ids of blocks, of which new blocks get none. It grows with every new block."""

    created_slugs: set[str] = field(default_factory=set)
    """Slugs of the pages that the plan creates. It grows with every new page."""

    def __post_init__(self) -> None:
        self.taken_ids.update(block.id for page in self.pages for block in page.blocks)

    @cached_property
    def words(self) -> list[str]:
        """The words of the message in lower case."""
        return split_words(self.message)

    @cached_property
    def mentioned_slugs(self) -> list[str]:
        """The slugs in the message."""
        return list_mentioned_slugs(self.message)

    def find_page(self, slug: object) -> Page | None:
        """Return the known page with a slug, or None."""
        return next((page for page in self.pages if page.slug == slug), None)

    def find_target_page(self, operation: RawOperation) -> Page | None:
        """Return the known page that an operation is about, or None."""
        return self.find_page(operation.get("pageSlug"))

    def find_target_block(self, operation: RawOperation) -> PageBlock | None:
        """Return the known block that an operation is about, or None."""
        page, block_id = self.find_target_page(operation), operation.get("blockId")
        return page.find_block(block_id) if page and isinstance(block_id, str) else None

    def make_block_id(self, block_type: str) -> str:
        """Return an id for a new block that no other block has."""
        number = 1
        while (block_id := f"b_{block_type.lower()}_{number}") in self.taken_ids:
            number += 1
        self.taken_ids.add(block_id)
        return block_id


def list_array_keys(block: PageBlock) -> list[str]:
    """Return the props of a block that are lists."""
    return [key for key, value in block.props.items() if isinstance(value, list)]


def find_only_list(block: PageBlock | None) -> str | None:
    """Return the prop that is the only list of a block, or None."""
    keys = list_array_keys(block) if block else []
    return keys[0] if len(keys) == 1 else None
