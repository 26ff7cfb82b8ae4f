"""Marker strings that must never appear in a log line. They are used in prompts, pages, keys and tokens."""

PROMPT = "canary-in-the-prompt-5b1e"
RESULT = "canary-in-a-result-c07d"
PAGE = "canary-in-the-page-90aa"
SNAPSHOT = "canary-in-the-snapshot-1f64"
ANSWER = "canary-in-the-answer-7e21"
KEY = "sk-ant-canary-key-44d0e8b2"
ALL_CANARIES = (PROMPT, RESULT, PAGE, SNAPSHOT, ANSWER, KEY)
