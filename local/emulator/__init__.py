"""MiniStack, corrected where this product leans on it hardest.

Started as `<emulator venv>/bin/python -m local.emulator`. Stock 1.5.33 and how it differs from AWS, one file each:

- `functions.py`    Lambda: another interpreter's functions, real error types, environments that stay warm after
                    an error, updates that wait for running invocations
- `environments.py` the processes behind that; `bootstrap.py` is what runs inside them
- `tokens.py`       Step Functions task tokens: one per attempt, heartbeats, used and foreign ones refused
- `tasks.py`        a task that waits for a token: fails with its function, goes on at once, JSONata time-outs
- `executions.py`   starting twice, stopping, the machine's own time-out, no delay at the start
- `expressions.py`  DynamoDB expressions are parsed once, not once per item
- `gateway.py`      API Gateway routes for any method
- `logs.py`         the newest log streams, not all of them
- `schedules.py`    a minute of a schedule can be shortened for tests
- `snapshots.py`    state survives a kill
- `streams.py`      a function behind a table's stream waits for its batching window
- `recording.py`    what was asked of AWS, for whoever counts it
- `upstream.py`     the seam: a correction whose upstream code has changed refuses to start
"""
