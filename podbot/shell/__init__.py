"""Shells: run commands in a sandbox, on this machine or in a test, through one protocol and with the same results."""
