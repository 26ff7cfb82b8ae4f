"""Send signed requests to servers of tenants, and verify what they sign (Standard Webhooks)."""
