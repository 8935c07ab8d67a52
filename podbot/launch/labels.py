"""The labels that make a container podbot's own."""

LABEL = "io.podbot"
KEEP = f"{LABEL}.keep"  # on the container and not only in the runtime directory, which a reboot empties
MANAGED = f"{LABEL}.managed=true"
