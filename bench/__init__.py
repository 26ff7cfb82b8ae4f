"""`python -m bench`: the numbers of this service, counted and timed in one run against the demo model.

Counts are exact and come first; times are p50 and p95 after warm-up, beside straight calls of the same model.

- `stage.py`      the running service, the model's scripts, and one turn with the moment of everything it told
- `requests.py`   what the turn asked of AWS · `units.py` what DynamoDB bills for that · `workflow.py` transitions
- `cost.py`       the reference turn at list prices (`prices.py`), for the settings of template.yaml
- `ledgers.py`    a month of a busy workspace's ledger
- `counts.py`, `lookups.py`, `audits.py`, `waits.py`, `trials.py`, `sites.py`, `folding.py`, `imports.py`   the rows
- `table.py`      how they are shown
"""
