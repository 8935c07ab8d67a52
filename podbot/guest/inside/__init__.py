"""What runs inside a sandbox, joined to one text by ``guest.source``: Python >= 3.8 and its standard library only."""
