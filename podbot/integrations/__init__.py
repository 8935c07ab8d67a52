"""Sandboxes behind the interfaces of evaluation harnesses, agents and a prompt library. podbot itself imports none."""
