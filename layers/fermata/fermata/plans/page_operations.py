"""Apply the operations on whole pages and on the settings of the site."""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from fermata.plans.operations import (
    CreatePage,
    DuplicatePage,
    MovePage,
    RemovePage,
    RenamePage,
    UpdatePageMeta,
    UpdateSiteConfig,
)
from fermata.plans.page_model import HOME_SLUG, PageMeta, SiteConfig, SiteDraft
from fermata.plans.slugs import find_slug_problem, make_copy_slug, make_free_id, make_page_id
from fermata.plans.staged_site import OperationFailed, StagedSite, merge_model

PageOperation = CreatePage | RenamePage | RemovePage | MovePage | DuplicatePage | UpdatePageMeta | UpdateSiteConfig

_LINK_MEMBERS = re.compile(r"href|url$|^to$|^link$", re.IGNORECASE)
_MARKDOWN_LINK = re.compile(r"\]\((/[^()\[\]\s]*+)\)")


def apply_page_operation(site: StagedSite, operation: PageOperation) -> bool:
    """Apply an operation on a page or on the settings of the site.

    Returns:
        Whether it has changed anything.

    Raises:
        OperationFailed: It names what does not exist, or what may not be changed.
    """
    match operation:
        case CreatePage():
            return _create_page(site, operation)
        case RenamePage():
            return _rename_page(site, operation)
        case RemovePage():
            return _remove_page(site, operation)
        case MovePage():
            return _move_page(site, operation)
        case DuplicatePage():
            return _duplicate_page(site, operation)
        case UpdatePageMeta():
            return _update_page_meta(site, operation)
        case UpdateSiteConfig():
            return _update_site_config(site, operation)


def _create_page(site: StagedSite, operation: CreatePage) -> bool:
    _require_free_slug(site, operation.page.slug)
    ids = [block.id for block in operation.page.blocks]
    if len(set(ids)) < len(ids):
        raise OperationFailed("schema_violation", f"Two blocks of the new page {operation.page.slug} have one id.")
    site.put_page(operation.page.model_copy(update={"id": _make_free_page_id(site, operation.page.id)}))
    return True


def _make_free_page_id(site: StagedSite, wanted: str) -> str:
    """Return an id that no page has. Ids come from slugs, and a page that was renamed keeps the one of its first."""
    return make_free_id(wanted, {site.get_page(slug).id for slug in site.slugs})


def _require_free_slug(site: StagedSite, slug: str) -> None:
    if site.has_page(slug):
        raise OperationFailed("schema_violation", f"There is a page {slug} already.")
    if problem := find_slug_problem(slug):
        raise OperationFailed("schema_violation", f"The slug {slug} {problem}.")


def _rename_page(site: StagedSite, operation: RenamePage) -> bool:
    page = site.get_page(operation.page_slug)
    new_slug = operation.new_page_slug or page.slug
    new_title = operation.new_title or page.title
    if (new_slug, new_title) == (page.slug, page.title):
        return False
    if new_slug == page.slug:
        site.put_page(page.model_copy(update={"title": new_title}))
        return True
    if page.slug == HOME_SLUG:
        raise OperationFailed("operation_failed", "The home page keeps its slug /. Only its title can change.")
    _require_free_slug(site, new_slug)
    site.replace_slug(page.slug, page.model_copy(update={"slug": new_slug, "title": new_title}))
    _rewrite_links(site, {page.slug: new_slug}, site.slugs)
    return True


def redirect_links(draft: SiteDraft, new_slugs: Mapping[str, str], kept: Collection[str], now: str) -> SiteDraft:
    """Return a draft in which links lead to other slugs.

    Args:
        draft: The draft. It does not change.
        new_slugs: Where links are to lead, by where they lead.
        kept: The slugs of pages that stay as they are.
        now: The ISO instant at which changed pages are marked as updated.
    """
    site = StagedSite(draft, now)
    _rewrite_links(site, new_slugs, [slug for slug in site.slugs if slug not in kept])
    return site.to_draft()


def _rewrite_links(site: StagedSite, new_slugs: Mapping[str, str], slugs: Sequence[str]) -> None:
    for slug in slugs:
        page = site.get_page(slug)
        blocks = [block.model_copy(update={"props": _rewrite_value(block.props, new_slugs)}) for block in page.blocks]
        if blocks != list(page.blocks):
            site.put_blocks(page, blocks)


def _rewrite_value(value: Any, new_slugs: Mapping[str, str], name: str = "") -> Any:
    if isinstance(value, dict):
        return {key: _rewrite_value(member, new_slugs, key) for key, member in value.items()}
    if isinstance(value, list):
        return [_rewrite_value(member, new_slugs, name) for member in value]
    if not isinstance(value, str):
        return value
    if _LINK_MEMBERS.search(name):
        return _rewrite_link(value, new_slugs)
    return _MARKDOWN_LINK.sub(lambda match: f"]({_rewrite_link(match[1], new_slugs)})", value)


def _rewrite_link(link: str, new_slugs: Mapping[str, str]) -> str:
    path = link.partition("?")[0].partition("#")[0]
    return f"{new_slugs[path]}{link[len(path) :]}" if path in new_slugs else link


def _remove_page(site: StagedSite, operation: RemovePage) -> bool:
    site.get_page(operation.page_slug)
    if operation.page_slug == HOME_SLUG:
        raise OperationFailed("operation_failed", "The home page cannot be removed.")
    if len(site.slugs) == 1:
        raise OperationFailed("operation_failed", "The last page cannot be removed.")
    site.remove_page(operation.page_slug)
    return True


def _move_page(site: StagedSite, operation: MovePage) -> bool:
    site.get_page(operation.page_slug)
    if operation.page_slug == HOME_SLUG:
        raise OperationFailed("operation_failed", "The home page stays the first.")
    before = site.slugs
    site.place_page(operation.page_slug, operation.after_page_slug)
    return site.slugs != before


def _duplicate_page(site: StagedSite, operation: DuplicatePage) -> bool:
    page = site.get_page(operation.page_slug)
    slug = operation.new_page_slug or make_copy_slug(page.slug, set(site.slugs))
    _require_free_slug(site, slug)
    page_id = _make_free_page_id(site, make_page_id(slug))
    copied = page.model_copy(update={"id": page_id, "slug": slug, "title": operation.new_title or f"{page.title} Copy"})
    site.put_page(copied)
    site.place_page(slug, operation.after_page_slug or page.slug)
    return True


def _update_page_meta(site: StagedSite, operation: UpdatePageMeta) -> bool:
    page = site.get_page(operation.page_slug)
    patch = operation.patch.model_dump(exclude={"title"})
    meta = PageMeta.model_validate(merge_model(page.meta or PageMeta(), patch))
    changed = page.model_copy(
        update={
            "title": operation.patch.title or page.title,
            "meta": meta if meta != PageMeta() else page.meta,
        }
    )
    if changed == page:
        return False
    site.put_page(changed)
    return True


def _update_site_config(site: StagedSite, operation: UpdateSiteConfig) -> bool:
    patch = operation.patch.model_dump()
    labels = {**(site.config.nav_labels or {}), **(operation.patch.nav_labels or {})} or None
    config = SiteConfig.model_validate(merge_model(site.config, {**patch, "nav_labels": labels}))
    if config == site.config:
        return False
    site.config = config
    return True
