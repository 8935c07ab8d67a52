"""The hosted protocols, without I/O: bytes in, decisions out."""
