"""podbot's own engine service: what this machine can do, a containers.conf that fits it, and the service."""
