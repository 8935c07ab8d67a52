"""Shared by the tests of ``podbot host``: clients, and the scripted agents (``inside/``) that they talk to."""
