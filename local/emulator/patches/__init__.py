"""Patches of MiniStack, by AWS service. Each module names what unpatched MiniStack does differently from AWS."""
