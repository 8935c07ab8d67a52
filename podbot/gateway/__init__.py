"""The gateway: a process on the host through which a sandbox with the filtered network reaches the hosts it may.

``hosts``, ``addresses``, ``host_rules``, ``sets``, ``client_hello`` and ``heads`` decide, and are pure; the others run
in the gateway's process, except ``gateway_client``, which starts it and talks to it (ADR 0046).
"""
