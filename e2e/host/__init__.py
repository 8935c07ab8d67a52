"""What the tests of ``podbot host`` share: clients, and the scripted agents (``inside/``) that they talk to."""
