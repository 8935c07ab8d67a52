"""The configuration: models, layers (file, environment, overrides), merge, load.

Every command loads this room, so its imports are cheap. :mod:`podbot.config.write` writes configurations.
"""

from podbot.config.load import config_location, load_config
from podbot.config.models import AppConfig, LoadOptions, Origin

__all__ = ["AppConfig", "LoadOptions", "Origin", "config_location", "load_config"]
