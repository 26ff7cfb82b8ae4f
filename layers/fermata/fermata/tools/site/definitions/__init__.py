"""Definitions of the site tools, one module per family; each tool is one entry beside its input model."""
