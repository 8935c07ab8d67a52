"""The hosted protocols, sans-IO: bytes in, decisions out."""
