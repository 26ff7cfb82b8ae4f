"""Define the immutable values that all packages share: messages, events, model requests and errors. No I/O here."""
