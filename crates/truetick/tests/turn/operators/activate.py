"""Binds sockets and becomes the program that gets them, as sd_listen_fds(3) describes.

Arguments: a user id or `-`, sockets as `KIND=ADDRESS:PORT=NAME`, `--`, the program and its arguments. The kind is udp,
tcp, bound (TCP that does not listen), dual (TCP of IPv6 that takes IPv4 too) or file. With the name `-` for all of them
there is no LISTEN_FDNAMES. Sockets of one address share it.
"""

import os
import socket
import sys

end = sys.argv.index("--")
user, specs, command = sys.argv[1], sys.argv[2:end], sys.argv[end + 1 :]
opened, names = [], []
for spec in specs:
    kind, address, name = spec.split("=")
    host, port = address.rsplit(":", 1)
    names.append(name)
    if kind == "file":
        opened.append(open("/dev/null"))
        continue
    family = socket.AF_INET6 if host.startswith("[") else socket.AF_INET
    made = socket.socket(family, socket.SOCK_DGRAM if kind == "udp" else socket.SOCK_STREAM)
    if family == socket.AF_INET6:
        made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, int(kind != "dual"))
    if [each.rsplit("=", 1)[0] for each in specs].count(f"{kind}={address}") > 1:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    made.bind((host.strip("[]"), int(port)))
    if kind in ("tcp", "dual"):
        made.listen()
    opened.append(made)
# Out of the way of the numbers that they get.
high = [os.dup2(each.fileno(), 100 + index, inheritable=False) for index, each in enumerate(opened)]
os.closerange(3, 100)
for index, fd in enumerate(high):
    os.dup2(fd, 3 + index)
os.environ["LISTEN_FDS"] = str(len(high))
os.environ.setdefault("LISTEN_PID", str(os.getpid()))
if set(names) != {"-"}:
    os.environ.setdefault("LISTEN_FDNAMES", ":".join(names))
if user != "-":
    os.setgroups([])
    os.setgid(int(user))
    os.setuid(int(user))
os.execv(command[0], command)
