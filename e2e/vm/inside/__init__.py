"""Tests that run in the machine of ``scripts/vm``: a real systemd, cgroup v2, a login, the user's own files."""
