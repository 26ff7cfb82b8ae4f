"""Design tokens as CSS custom properties: derive them, and read them back from a page."""
