"""Programs that run in a virtual environment of a harness's own, which has podbot with the extra for it."""
