"""How every tar archive that podbot sends to an engine ends."""

BLOCK = 512  # bytes; a member's header is one block, and its content is padded to whole ones
# tarfile pads an archive to 10,240 bytes. Podman's copier stops reading at the two zero blocks and closes its pipe;
# whatever it is given behind them fails with "write |1: broken pipe" unless it came in the same read (measured: each
# time when it comes 20 ms later). So an archive ends right here.
END = bytes(2 * BLOCK)
