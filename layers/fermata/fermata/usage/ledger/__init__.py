"""Usage ledger: write and read its rows, parse them into increments, and render them as log lines."""
