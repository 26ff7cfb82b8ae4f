"""The site's design tokens, in four families."""

from typing import Any

from pydantic import Field

from fermata.tools.site.colors import ColorSettings, describe_colors
from fermata.tools.site.fonts import FontSettings, describe_fonts
from fermata.tools.site.scales import SPACING, TYPOGRAPHY, Preferences, ScaleSettings, describe_scales
from fermata.tools.site.snapshot import Design, Lenient, part_of, read_part


class Framework(Lenient):
    colors: ColorSettings = Field(default_factory=ColorSettings)
    typography: ScaleSettings = Field(default_factory=ScaleSettings)
    spacing: ScaleSettings = Field(default_factory=ScaleSettings)
    preferences: Preferences = Field(default_factory=Preferences)


class DesignSettings(Lenient):
    framework: Framework = Field(default_factory=Framework)
    fonts: FontSettings = Field(default_factory=FontSettings)


def design_of(snapshot: Any) -> DesignSettings:
    return read_part(part_of(snapshot, Design).site.settings, DesignSettings, "snapshot.site.settings")


def list_tokens(snapshot: Any, family: str | None = None) -> dict[str, list[dict[str, Any]]]:
    """All four families, or one, with the other three empty."""
    settings = design_of(snapshot)
    framework = settings.framework
    return {
        name: tokens if family in (None, name) else []
        for name, tokens in (
            ("colors", describe_colors(framework.colors)),
            ("typography", describe_scales(TYPOGRAPHY, framework.typography, framework.preferences)),
            ("spacing", describe_scales(SPACING, framework.spacing, framework.preferences)),
            ("fonts", describe_fonts(settings.fonts)),
        )
    }
