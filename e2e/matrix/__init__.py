"""Which client works with which agent through ``podbot host``, step by step, found out by running them."""
