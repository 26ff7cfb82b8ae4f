"""List the design tokens of a site, in four families: colours, typography, spacing and fonts."""

from typing import Any

from pydantic import Field

from fermata.tools.lenient_models import LenientModel
from fermata.tools.site.design_tokens.colors import ColorSettings, describe_colors
from fermata.tools.site.design_tokens.fonts import FontSettings, describe_fonts
from fermata.tools.site.design_tokens.scales import (
    SPACING_SCALE,
    TYPE_SCALE,
    ScalePreferences,
    ScaleSettings,
    describe_scales,
)
from fermata.tools.site.snapshot import DesignPart, read_snapshot_part, read_snapshot_value


class DesignFramework(LenientModel):
    colors: ColorSettings = Field(default_factory=ColorSettings)
    typography: ScaleSettings = Field(default_factory=ScaleSettings)
    spacing: ScaleSettings = Field(default_factory=ScaleSettings)
    preferences: ScalePreferences = Field(default_factory=ScalePreferences)


class DesignSettings(LenientModel):
    framework: DesignFramework = Field(default_factory=DesignFramework)
    fonts: FontSettings = Field(default_factory=FontSettings)


def read_design_settings(snapshot: Any) -> DesignSettings:
    """Read the design settings of a site; raises ToolFailure if the snapshot has none or they cannot be read."""
    settings = read_snapshot_part(snapshot, DesignPart).site.settings
    return read_snapshot_value(settings, DesignSettings, "snapshot.site.settings")


def list_tokens(snapshot: Any, family: str | None = None) -> dict[str, list[dict[str, Any]]]:
    """List the tokens of all four families, or of one `family` with the other three empty."""
    settings = read_design_settings(snapshot)
    framework = settings.framework
    return {
        name: tokens if family in (None, name) else []
        for name, tokens in (
            ("colors", describe_colors(framework.colors)),
            ("typography", describe_scales(TYPE_SCALE, framework.typography, framework.preferences)),
            ("spacing", describe_scales(SPACING_SCALE, framework.spacing, framework.preferences)),
            ("fonts", describe_fonts(settings.fonts)),
        )
    }
