"""A stand-in for a tenant's own content system: made-up data, real tokens, real HTTP (docs/host.md)."""
