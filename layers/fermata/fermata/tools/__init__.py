"""The tools a model may call: their definitions, and the pipeline from a call to its result."""
