"""Counts what was used. The ledger is the truth; everything else can be rebuilt from it."""
