"""Call tools that are HTTP endpoints of a tenant: manifests, registration, signed calls and their outcomes."""
