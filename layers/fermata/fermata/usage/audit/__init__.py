"""Audit: what a tenant used, by user, scope, model and local day; and the comparison with the ledger and the logs."""
