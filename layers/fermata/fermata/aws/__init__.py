"""Access to AWS: settings, tables, blobs, secrets, the workflow, logs and the clock. No other package calls AWS."""
