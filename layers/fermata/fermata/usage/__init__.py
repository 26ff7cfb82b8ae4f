"""Usage ledger, budgets, rollups and audit. The ledger is the source of truth; all sums can be rebuilt from it."""
