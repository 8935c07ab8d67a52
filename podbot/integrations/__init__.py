"""Sandboxes for evaluation harnesses, each behind the harness's own interface. Nothing of podbot imports this room."""
