"""Usage ledger: write and read its rows, parse them into postings, and render them as log lines."""
