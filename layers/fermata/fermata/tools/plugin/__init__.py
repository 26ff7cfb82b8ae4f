"""The plugin workspace: the files of the plugin that is open, and building and activating it."""
