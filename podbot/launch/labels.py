"""The labels that make a container podbot's own."""

LABEL = "io.podbot"
MANAGED = f"{LABEL}.managed=true"
