"""podbot's private engine service: facts about the machine, a containers.conf that suits it, and the service."""
