"""Give what is published, or drafts, to whoever has a token; export a space, and import into one."""
