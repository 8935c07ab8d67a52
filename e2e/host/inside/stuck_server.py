"""A FUSE server that never answers, and a thread of the same process that waits for it: no signal ends either.

usage: stuck_server.py [NAME [detached]]: where the file system is mounted, and whether it is unmounted lazily then.
"""

import ctypes
import os
import struct
import sys
import threading
import time

NEWUSER, NEWNS, INIT = 0x10000000, 0x20000, 26
kernel = ctypes.CDLL(None, use_errno=True)
user, group = os.getuid(), os.getgid()
if kernel.unshare(NEWUSER | NEWNS):
    raise OSError(ctypes.get_errno(), "unshare")
for name, text in (("setgroups", "deny"), ("uid_map", f"0 {user} 1"), ("gid_map", f"0 {group} 1")):
    with open(f"/proc/self/{name}", "w") as file:
        file.write(text)
server = os.open("/dev/fuse", os.O_RDWR)
name = "/tmp/" + (sys.argv[1] if len(sys.argv) > 1 else "mounted")
os.makedirs(name)
options = f"fd={server},rootmode=40000,user_id=0,group_id=0".encode()
if kernel.mount(b"x", os.fsencode(name), b"fuse", 0, options):
    raise OSError(ctypes.get_errno(), "mount")


def serve() -> None:
    while True:
        _, code, unique = struct.unpack_from("<IIQ", os.read(server, 1 << 17))
        if code == INIT:
            answer = struct.pack("<IIIIHHIIHHI", 7, 31, 0, 0, 0, 0, 4096, 1, 0, 0, 0) + b"\0" * 28
            os.write(server, struct.pack("<IiQ", 16 + len(answer), 0, unique) + answer)
        else:
            open("waiting", "w").close()


threading.Thread(target=serve, daemon=True).start()
threading.Thread(target=os.listdir, args=(name,)).start()
if sys.argv[2:]:
    while not os.path.exists("waiting"):
        time.sleep(0.05)
    kernel.umount2(os.fsencode(name), 2)  # MNT_DETACH
open("ready", "w").close()
time.sleep(600)
