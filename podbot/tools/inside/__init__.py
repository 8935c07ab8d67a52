"""The files worker: the program that reads and writes files for the tools, inside the sandbox or on this host."""
