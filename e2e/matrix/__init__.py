"""Which client works with which agent through ``podbot host``, step by step: made by running them."""
