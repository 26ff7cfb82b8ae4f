"""Let a model read the files that its agent was given: four tools over a bundle that never changes."""
