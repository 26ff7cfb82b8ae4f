#!/bin/sh
# The Lambda Web Adapter starts this and passes every request on. Only loopback is listened to: the adapter's request
# context headers can be trusted because nobody else can send them.
export PYTHONPATH="${PYTHONPATH:+$PYTHONPATH:}/opt/python:$LAMBDA_RUNTIME_DIR"
exec python3 -m uvicorn app:app --host 127.0.0.1 --port "${AWS_LWA_PORT:-8080}" \
    --no-access-log --no-server-header --log-level warning
