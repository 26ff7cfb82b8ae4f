"""Compute a site's design tokens (colours, fonts, fluid scales) from the settings in its snapshot."""
