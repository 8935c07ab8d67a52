"""Ways out of a sandbox with the filtered network. The file is run inside: ``python3 FILE PORT OTHER ABSTRACT``.

PORT of 127.0.0.2 on the host is allowed, OTHER is not; ABSTRACT names an abstract unix socket of the host. It prints
each probe's result as JSON: ``reached: …``, or why not.
"""

from __future__ import annotations

import functools
import json
import os
import socket
import struct
import sys
from collections.abc import Callable
from typing import Any

GATEWAY = ("127.0.0.1", 28282)
HOST = "127.0.0.2"


def tcp(address: Any, port: Any, family: Any = socket.AF_INET) -> Any:
    with socket.socket(family) as connection:
        connection.settimeout(5)
        connection.connect((address, port))
        return connection.getpeername()


def udp(address: Any, port: Any, family: Any = socket.AF_INET) -> Any:
    with socket.socket(family, socket.SOCK_DGRAM) as connection:
        connection.settimeout(2)
        connection.connect((address, port))
        connection.send(b"x" * 30)
        return connection.recv(10)


def raw(family: Any, proto: Any, address: Any) -> Any:
    with socket.socket(family, socket.SOCK_RAW, proto) as connection:
        connection.settimeout(2)
        connection.sendto(b"\x08\0\xf7\xff\0\0\0\0", (address, 0))
        return connection.recv(10)


def packets() -> Any:
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0x300) as connection:
        connection.bind(("eth0", 0))
        return connection.getsockname()


def vsock() -> Any:
    with socket.socket(socket.AF_VSOCK) as connection:
        connection.connect((2, 1))
        return "connected"


def after(command: Any) -> Any:
    """Whether the internet can be reached once the command has run."""
    os.popen(command + " 2>&1").read()
    return tcp("1.1.1.1", 80)


def unix(*paths: Any) -> Any:
    for path in paths:
        with socket.socket(socket.AF_UNIX) as connection:
            if connection.connect_ex(path) == 0:
                return path
    raise OSError("no such socket")


def found(*names: Any) -> Any:
    hits = [os.path.join(at, name) for at, _, files in os.walk("/run") for name in files if name in names]
    if not hits:
        raise OSError("no such file")
    return hits


def guest() -> Any:
    """The socket of podbot's guest, by which podbot runs commands: it answers no process of the sandbox."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(5)
        connection.connect("/run/podbot/guest/channel")
        connection.send(b"G\x6e\x7a")
        answer = connection.recv(10)
    if not answer:
        raise OSError("closed")
    return answer


def answer(data: Any) -> Any:
    with socket.create_connection(GATEWAY, 20) as connection:
        connection.sendall(data)
        got = b""
        while len(got) < 4096:
            more = connection.recv(4096)
            if not more:
                break
            got += more
        return got


def asked(line: Any, *headers: Any) -> Any:
    """The gateway's answer to a request. A tunnel, or a server's answer, is a way out."""
    got = answer("\r\n".join([line, *headers, "", ""]).encode("utf-8", "surrogateescape"))
    first = got.split(b"\r\n", 1)[0].decode("latin-1")
    if " 200" in first:
        return got[-100:].decode("latin-1")
    raise OSError(first or "nothing")


def tunnel(target: Any, data: Any) -> Any:
    with socket.create_connection(GATEWAY, 20) as connection:
        connection.sendall((f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n").encode())
        first = connection.recv(4096)
        if b" 200 " not in first:
            raise OSError(first.split(b"\r\n")[0].decode())
        connection.sendall(data)
        got = connection.recv(4096)
        if got[:1] in (b"", b"\x15"):
            raise OSError(f"ended: {got!r}")
        return got


def hello(name: Any) -> Any:
    text = name.encode()
    size = len(text)
    extension = b"\0\0" + struct.pack("!HHBH", size + 5, size + 3, 0, size) + text
    body = b"\3\3" + bytes(32) + b"\0\0\2\x13\1\1\0" + struct.pack("!H", len(extension)) + extension
    message = b"\1" + struct.pack("!I", len(body))[1:] + body
    return b"\x16\3\1" + struct.pack("!H", len(message)) + message


def targets(port: Any, other: Any) -> Any:
    """Targets of CONNECT that are not the allowed one, or not in its one form."""
    allowed = f"{HOST}:{port}"
    return {
        "another port": f"{HOST}:{other}",
        "the host's loopback": f"127.0.0.1:{port}",
        "localhost": f"localhost:{port}",
        "an alias of loopback": f"ip6-localhost:{port}",
        "a short form": f"127.2:{port}",
        "hexadecimal": f"0x7f.0.0.2:{port}",
        "one number": f"2130706434:{port}",
        "one hexadecimal number": f"0x7f000002:{port}",
        "octal": f"0177.0.0.2:{port}",
        "leading zeros": f"127.000.000.002:{port}",
        "a mapped address": f"[::ffff:{HOST}]:{port}",
        "a mapped address in hexadecimal": f"[::ffff:7f00:2]:{port}",
        "NAT64": f"[64:ff9b::7f00:2]:{port}",
        "6to4": f"[2002:7f00:2::]:{port}",
        "Teredo": f"[2001:0:7f00:2::]:{port}",
        "a compatible address": f"[::{HOST}]:{port}",
        "a NUL": allowed.replace(":", "\0.example:"),
        "an encoded NUL": allowed.replace(":", "%00:"),
        "a blank": allowed.replace(":", " :"),
        "a tab": allowed.replace(":", "\t:"),
        "user information": "a@" + allowed,
        "a path": allowed + "/x",
        "a scheme": "http://" + allowed,
        "two ports": allowed + ":443",
        "port 0": HOST + ":0",
        "a port that wraps around": f"{HOST}:{port + 65536}",
        "a port with a plus": f"{HOST}:+{port}",
        "brackets": f"[{HOST}]:{port}",
        "an open bracket": f"[{HOST}:{port}",
        "a zone": f"[fe80::1%lo]:{port}",
        "no host": f":{port}",
        "no port": HOST,
        "an empty port": HOST + ":",
        "metadata": "169.254.169.254:80",
        "metadata over IPv6": "[fd00:ec2::254]:80",
        "the unspecified address": f"0.0.0.0:{port}",
        "IPv6 loopback": f"[::1]:{port}",
        "broadcast": f"255.255.255.255:{port}",
        "multicast": f"224.0.0.1:{port}",
        "a subdomain": f"a.{HOST}:{port}",
        "a wildcard": f"*:{port}",
        "punycode": f"xn--127-iva.0.0.2:{port}",
        "Arabic digits": f"127.0.0.\u0662:{port}",
        "a full-width dot": f"127\uff0e0.0.2:{port}",
        "a long name": "a." * 200 + f"example:{port}",
        "a backslash": f"{HOST}\\@x:{port}",
        "the gateway itself": "127.0.0.1:28282",
    }


def requests(port: Any) -> Any:
    """Requests that are malformed, or that name another server than the allowed one."""
    allowed = f"{HOST}:{port}"
    url, host = f"GET http://{allowed}/x HTTP/1.1", "Host: " + allowed
    return {
        "CONNECT with another Host": (f"CONNECT {allowed} HTTP/1.1", "Host: example.com"),
        "CONNECT elsewhere with an allowed Host": ("CONNECT example.com:443 HTTP/1.1", host),
        "CONNECT with a body": (f"CONNECT {allowed} HTTP/1.1", host, "Content-Length: 5"),
        "another Host": (url, "Host: example.com"),
        "another address": ("GET http://example.com/x HTTP/1.1", host),
        "https": (f"GET https://{allowed}/x HTTP/1.1", host),
        "user information": (f"GET http://example.com@{allowed}/x HTTP/1.1", host),
        "user information before another server": (f"GET http://{allowed}@example.com/x HTTP/1.1", host),
        "a backslash": (f"GET http://{allowed}\\@example.com/x HTTP/1.1", host),
        "a fragment": (f"GET http://{allowed}/x#@example.com HTTP/1.1", host),
        "a file": ("GET file:///etc/passwd HTTP/1.1", host),
        "a path with another Host": ("GET /x HTTP/1.1", host),
        "two Hosts": (url, host, "Host: example.com"),
        "no Host": (url,),
        "two lengths": (url, host, "Content-Length: 0", "Content-Length: 5"),
        "a length and a coding": (url, host, "Content-Length: 5", "Transfer-Encoding: chunked"),
        "another coding": (url, host, "Transfer-Encoding: gzip, chunked"),
        "a blank before the colon": (url, host, "Transfer-Encoding : chunked"),
        "a folded line": (url, host, "X: 1", " Content-Length: 5"),
        "a bare line feed": (url, host, "X: 1\nContent-Length: 5"),
        "a bare carriage return": (url, host, "X: 1\rContent-Length: 5"),
        "a NUL in a header": (url, host, "X: 1\0"),
        "no ASCII in a header": (url, host, "X: \u00e4"),
        "TRACE": (f"TRACE http://{allowed}/x HTTP/1.1", host),
        "HTTP/2": ("PRI * HTTP/2.0",),
        "HTTP/0.9": (f"GET http://{allowed}/x",),
        "an asterisk": ("OPTIONS * HTTP/1.1", host),
    }


def probes(port: int, other: int, abstract: str) -> dict[str, Callable[[], Any]]:
    """Name -> the attempt, a function; nothing is tried here."""
    six = socket.AF_INET6
    made: dict[str, tuple[Any, ...]] = {
        "tcp to the internet": (tcp, "1.1.1.1", 443),
        "tcp to the allowed server itself": (tcp, HOST, port),
        "tcp to the host's loopback": (tcp, "127.0.0.1", port),
        "tcp to a private network": (tcp, "10.0.0.1", 80),
        "tcp to metadata": (tcp, "169.254.169.254", 80),
        "tcp over IPv6": (tcp, "2606:4700::1111", 443, six),
        "tcp to IPv6 loopback": (tcp, "::1", port, six),
        "udp to the internet": (udp, "1.1.1.1", 53),
        "udp to loopback": (udp, "127.0.0.1", 53),
        "udp to a resolver on loopback": (udp, "127.0.0.53", 53),
        "udp over IPv6": (udp, "2606:4700::1111", 443, six),
        "dns": (socket.getaddrinfo, "example.com", 443),
        "icmp": (raw, socket.AF_INET, 1, "1.1.1.1"),
        "icmp over IPv6": (raw, six, 58, "2606:4700::1111"),
        "packets of an interface": (packets,),
        "vsock": (vsock,),
        "an address and a route of its own": (
            after,
            "ip addr add 10.9.9.9/24 dev lo; ip route add default via 10.9.9.1",
        ),
        "a tunnel interface": (after, "ip tuntap add tap0 mode tap; ip link set tap0 up"),
        "a namespace of its own": (after, "unshare -rn sh -c 'ip link add v type veth peer name w netns 1'"),
        "an abstract socket of the host": (unix, "\0" + abstract),
        "the engine's socket": (
            unix,
            "/run/podman/podman.sock",
            "/var/run/docker.sock",
            "/run/user/0/podman/podman.sock",
        ),
        "the gateway's control socket": (found, "control"),
        "the gateway's log": (found, "log"),
        "the guest's socket": (guest,),
        "a tunnel for another server's TLS": (tunnel, f"{HOST}:{port}", hello("example.com")),
        "a tunnel for an empty TLS record": (tunnel, f"{HOST}:{port}", b"\x16\3\1\0\0"),
        "a tunnel for no ClientHello": (tunnel, f"{HOST}:{port}", b"\x16\3\1\0\5hello"),
        "a tunnel for two servers": (tunnel, f"{HOST}:{port}", hello("a.example")[:-3] + b"\0\0\0"),
        "a path of the gateway": (asked, "GET /anthropic/v1/messages HTTP/1.1", "Host: 127.0.0.1:28282"),
        "a path that leads out of the gateway": (asked, "GET /../control HTTP/1.1", "Host: 127.0.0.1:28282"),
    }
    made.update({"CONNECT to " + name: (asked, f"CONNECT {target} HTTP/1.1", "Host: " + target)
                 for name, target in targets(port, other).items()})  # fmt: skip
    made.update({"a request with " + name: (asked, *words) for name, words in requests(port).items()})
    allowed = f"{HOST}:{port}"
    line = f"GET http://{allowed}/reached HTTP/1.1"
    made["the allowed server"] = (asked, line, f"Host: {allowed}", "Connection: close")
    return {name: functools.partial(words[0], *words[1:]) for name, words in made.items()}


def main(port: str, other: str, abstract: str) -> None:
    results = {}
    for name, attempt in probes(int(port), int(other), abstract).items():
        try:
            results[name] = f"reached: {attempt()!r}"
        except Exception as exc:  # noqa: BLE001 - each is a result
            results[name] = f"{type(exc).__name__}: {exc}"
    print(json.dumps(results))


if __name__ == "__main__":
    main(*sys.argv[1:])
