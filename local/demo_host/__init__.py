"""A stand-in for a tenant's own content system (docs/host.md), with made-up data and real tokens over HTTP."""
