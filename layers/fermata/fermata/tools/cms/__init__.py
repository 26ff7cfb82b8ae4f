"""Defines the tools of the CMS, and answers them from the content store."""
