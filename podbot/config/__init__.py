"""The configuration: models, layers (file, environment, overrides), merge, load.

Light on purpose: every command loads this room. Writing lives in :mod:`podbot.config.write`.
"""

from podbot.config.load import config_location, load_config
from podbot.config.models import AppConfig, LoadOptions, Origin

__all__ = ["AppConfig", "LoadOptions", "Origin", "config_location", "load_config"]
