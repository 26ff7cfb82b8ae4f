"""List and change the settings of a site for the CMS tools."""

from typing import Any

from fermata.content.content_model import DEFINITION_LOCALE
from fermata.content.documents.change_document import SINGLETON_ID
from fermata.content.documents.document import ContentStatus, DocumentContent, DocumentKey, DocumentVersion
from fermata.content.documents.read_document import WriteBasis
from fermata.content.opened_space import OpenedSpace
from fermata.domain.errors import InvalidRequest, NotFound

SETTINGS_DOCUMENT = DocumentKey("setting", SINGLETON_ID)
NAVIGATION_KEY = "navigation"
MAX_SETTING_KEY_CHARS = 100


def get_site_settings(_arguments: dict[str, Any], access: OpenedSpace) -> dict[str, Any]:
    """Return all settings of the site."""
    settings = _read_settings(access)
    return {"success": True, "settings": settings, "message": f"The site has {len(settings)} settings"}


def get_site_setting(arguments: dict[str, Any], access: OpenedSpace) -> dict[str, Any]:
    """Return one setting."""
    key, settings = arguments["key"], _read_settings(access)
    if key not in settings:
        raise NotFound(f"The site has no setting {key[:80]!r}. It has: {', '.join(sorted(settings)) or 'none'}.")
    return {"success": True, "key": key, "value": settings[key], "message": f"Setting {key!r}"}


def update_site_settings(arguments: dict[str, Any], access: OpenedSpace) -> dict[str, Any]:
    """Set settings by their keys. Those that are null are removed, and those that are not named stay."""
    given: dict[str, Any] = arguments["settings"]
    if NAVIGATION_KEY in given:
        raise InvalidRequest("The navigation is changed with the tools for navigation items, which keep its rules.")
    if any(not key or len(key) > MAX_SETTING_KEY_CHARS for key in given):
        raise InvalidRequest(f"The key of a setting has 1 to {MAX_SETTING_KEY_CHARS} characters.")
    before = _read_settings(access)

    def decide(version: DocumentVersion | None, _basis: WriteBasis) -> DocumentContent:
        content = version.content if version and version.content else DocumentContent(status=ContentStatus.PUBLISHED)
        return content.with_fields(DEFINITION_LOCALE, given)

    written = access.documents.change(SETTINGS_DOCUMENT, decide)
    settings = dict(written.version.content.get_locale(DEFINITION_LOCALE)) if written.version.content else {}
    changed = sorted(key for key in given if before.get(key) != settings.get(key))
    return {
        "success": True, "settings": settings, "changedKeys": changed, "message": f"Changed {len(changed)} settings",
    }  # fmt: skip


def _read_settings(access: OpenedSpace) -> dict[str, Any]:
    version = access.documents.find(SETTINGS_DOCUMENT)
    return dict(version.content.get_locale(DEFINITION_LOCALE)) if version and version.content else {}
