"""podbot: run any AI coding agent inside a Podman sandbox."""

from podbot._version import __version__

__all__ = ["__version__"]
