"""A Debian 13 machine under QEMU: systemd, cgroup v2, Podman 5, an ordinary user. ``make test-vm``, ``scripts/vm``."""

HOSTNAME = "podbot-vm"
