"""The one place that names podbot's version (hatchling reads it at build time)."""

__version__ = "0.1.0"
