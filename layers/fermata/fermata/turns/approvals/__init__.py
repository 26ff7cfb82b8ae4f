"""Hold a tool call until a person has decided about it, and record the decision."""
