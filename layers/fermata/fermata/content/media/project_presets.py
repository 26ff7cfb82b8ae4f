"""Find the sizes of a preset: one that every space has, or one that a project has defined (decision 0666).

`mediaVariants` in the `config` of a project's settings has its own presets, each with sizes by name:

    {"banner": {"wide": {"width": 1600, "height": 400, "format": "webp", "fit": "cover"}}}
"""

import re
from collections.abc import Mapping
from typing import Any

from fermata.aws.resources import Resources
from fermata.aws.workspace_subscription import require_plan_feature
from fermata.content.content_model import DEFINITION_LOCALE
from fermata.content.content_space import SpaceKey
from fermata.content.documents.document import DocumentKey
from fermata.content.documents.read_document import PROJECT_KEY, read_newest_version
from fermata.content.media.variant_presets import MEDIA_PRESETS, PresetSize
from fermata.domain.errors import InvalidRequest
from fermata.domain.workspace_plan import PlanFeature

PRESETS_MEMBER = "mediaVariants"
MAX_OWN_PRESETS, MAX_PRESET_SIZES, MAX_SIZE_EDGE_PIXELS = 20, 8, 2560
_PRESET_NAME, _SIZE_NAME = re.compile("[a-z][a-z0-9-]{0,18}"), re.compile("[a-z0-9]{1,20}")
_FORMATS = {"webp": "WEBP", "jpeg": "JPEG", "png": "PNG"}
_FITS = {"cover": True, "contain": False}
_MEMBERS = frozenset({"width", "height", "format", "fit"})


def find_preset_sizes(resources: Resources, space: SpaceKey, preset: str) -> tuple[PresetSize, ...]:
    """Return the sizes of a preset.

    Args:
        resources: Of the process.
        space: The space whose project may have presets of its own.
        preset: Its name; empty for none.

    Raises:
        InvalidRequest: There is no such preset, or the project does not define it as it should.
        PlanLocked: Nobody pays for the workspace.
        PlanUpgradeRequired: The plan of the workspace has no presets of its own.
    """
    if not preset or preset in MEDIA_PRESETS:
        return MEDIA_PRESETS.get(preset, ())
    version = read_newest_version(resources, space, PROJECT_KEY)
    settings = version.content.get_locale(DEFINITION_LOCALE) if version and version.content else {}
    own = parse_media_presets(settings.get("config"))
    if preset not in own:
        raise InvalidRequest(f"There is no preset {preset}. There are {', '.join([*MEDIA_PRESETS, *own])}.")
    require_plan_feature(resources, space.tenant, PlanFeature.MEDIA_VARIANTS)
    return own[preset]


def parse_media_presets(config: Any) -> dict[str, tuple[PresetSize, ...]]:
    """Return the presets that the settings of a project define, by name.

    Args:
        config: The member `config` of the settings.

    Raises:
        InvalidRequest: One is not defined as it should be.
    """
    presets = config.get(PRESETS_MEMBER) if isinstance(config, dict) else None
    if presets is None:
        return {}
    if not isinstance(presets, dict) or len(presets) > MAX_OWN_PRESETS:
        raise InvalidRequest(f"'{PRESETS_MEMBER}' must be an object with at most {MAX_OWN_PRESETS} presets by name.")
    return {name: _parse_preset(name, sizes) for name, sizes in presets.items()}


def check_project_settings(key: DocumentKey, locales: Mapping[str, Mapping[str, Any]] | None) -> None:
    """Check what the settings of a project are to say of its presets of media, so that whoever writes it learns it.

    Args:
        key: The document that changes. Only the settings of a project are checked.
        locales: What it is to say by locale; None for nothing else than before.

    Raises:
        InvalidRequest: A preset is not defined as it should be.
    """
    if key == PROJECT_KEY:
        parse_media_presets((locales or {}).get(DEFINITION_LOCALE, {}).get("config"))


def check_new_presets(before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
    """Check the presets of a project that comes from files. Those that it had already are no reason to refuse it.

    Args:
        before: The settings of the project until now.
        after: Those that it is to have.

    Raises:
        InvalidRequest: A preset is not defined as it should be.
    """
    if after.get(PRESETS_MEMBER) != before.get(PRESETS_MEMBER):
        parse_media_presets(after)


def _parse_preset(name: str, sizes: Any) -> tuple[PresetSize, ...]:
    place = f"'{PRESETS_MEMBER}.{name[:40]}'"
    if not _PRESET_NAME.fullmatch(name):
        raise InvalidRequest(f"{place}: a preset is called by up to 19 small letters, digits and hyphens.")
    if name in MEDIA_PRESETS:
        raise InvalidRequest(f"{place}: every project has a preset of this name. Choose another one.")
    if not isinstance(sizes, dict) or not 0 < len(sizes) <= MAX_PRESET_SIZES:
        raise InvalidRequest(f"{place} must be an object with 1 to {MAX_PRESET_SIZES} sizes by name.")
    return tuple(_parse_size(f"{place[:-1]}.{own[:40]}'", name, own, size) for own, size in sizes.items())


def _parse_size(place: str, preset: str, name: str, size: Any) -> PresetSize:
    if not _SIZE_NAME.fullmatch(name):
        raise InvalidRequest(f"{place}: a size is called by up to 20 small letters and digits.")
    if not isinstance(size, dict) or not size.keys() <= _MEMBERS:
        raise InvalidRequest(f"{place} must be an object with {', '.join(sorted(_MEMBERS))} only.")
    width, height = (_parse_edge(place, size, edge) for edge in ("width", "height"))
    kind, fit = _choose(place, size, "format", _FORMATS), _choose(place, size, "fit", _FITS)
    box = f"{width}x{height} {kind} {fit}"
    return PresetSize(f"{preset}-{name}", width, height, _FORMATS[kind], _FITS[fit], box)


def _parse_edge(place: str, size: Mapping[str, Any], edge: str) -> int:
    value = size.get(edge)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value <= MAX_SIZE_EDGE_PIXELS:
        raise InvalidRequest(f"{place}: '{edge}' must be a number of pixels from 1 to {MAX_SIZE_EDGE_PIXELS}.")
    return value


def _choose(place: str, size: Mapping[str, Any], member: str, known: Mapping[str, Any]) -> str:
    """Return a member that is one of the known words; the first of them if it is missing."""
    value = size.get(member, next(iter(known)))
    if not isinstance(value, str) or value not in known:
        raise InvalidRequest(f"{place}: '{member}' must be {', '.join(known)}.")
    return value
