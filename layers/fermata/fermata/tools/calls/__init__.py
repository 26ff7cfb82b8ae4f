"""Process one tool call: admit it, run it, and shape its result for the model."""
