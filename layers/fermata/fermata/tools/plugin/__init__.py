"""Tools of the plugin editor: the files of the open plugin, and building and activating plugins."""
