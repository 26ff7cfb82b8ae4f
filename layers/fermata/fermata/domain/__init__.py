"""The nouns everybody speaks, and nothing that acts."""
