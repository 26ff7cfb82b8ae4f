"""Budgets: limits per tenant and user, accounts that count spending, and holds for requests under way."""
