"""Benchmark of the service on its local cloud: `python -m bench`.

Counts are exact and come first. Times are p50 and p95 after warm-up, compared with direct calls of the same demo model.

Measurements, one result row each:

- `driver_decoding`, `import_time`: processor time
- `workflow_counts`, `aws_call_counts`: state transitions and AWS calls
- `calls_before_model_request`: AWS calls in series before the model is asked (`serial_call_count`)
- `reference_turn_cost`: DynamoDB units and cost of one turn (`turn_cost`, `aws_prices`, `dynamodb_units`)
- `latency`: time that the service adds to the model's
- `fault_and_load`: killed functions, concurrent turns, long conversations
- `audit_queries`: audits of a busy workspace (`synthetic_ledger`)
- `large_site`: prompts and memory for a large site
- `large_space`: lists, writes and searches of a space of 10,000 documents

Tools of the measurements: `harness` runs turns on the service, `aws_calls` records calls of AWS,
`transitions_and_state_size` reads Step Functions histories, `stats` computes percentiles, `report` prints and writes
the rows.
"""
