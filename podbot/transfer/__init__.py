"""Copies files between this host and a sandbox; the sandbox's side of it is hostile."""
