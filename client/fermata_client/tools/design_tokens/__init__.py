"""Tools for design tokens, which a page has as custom properties of its root element."""
