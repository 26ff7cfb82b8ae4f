"""Authentication of callers, and the tenants whose tokens they present."""
