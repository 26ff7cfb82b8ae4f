"""Keep prompts that were sent while a conversation was busy, and start them one after the other."""
