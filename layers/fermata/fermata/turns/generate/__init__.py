"""Generate texts and objects, and decide questions, with a model and without a conversation."""
