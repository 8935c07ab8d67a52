"""The end of every tar archive that podbot sends to an engine."""

BLOCK = 512  # bytes; a member's header is one block, and its content is padded to whole ones
# tarfile pads an archive to 10,240 bytes. Podman's copier stops reading at the two zero blocks and closes its pipe.
# Further data fails with "write |1: broken pipe" unless it arrived in the same read (measured: every time when it
# arrives 20 ms later). So archives end with exactly these blocks.
END = bytes(2 * BLOCK)
