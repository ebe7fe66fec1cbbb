"""Two aioice connections with relayed candidates only exchange datagrams in both directions.

aioice_relay.py HOST PORT USERNAME PASSWORD udp|tcp|tls [direct]

With `direct` the callee has candidates of its host only, and one relay carries the call.

Prints one line of JSON: how many payloads arrived as they were sent, and which pair carried them. With HOLD_SECONDS in
the environment the call goes on for as long, with a payload a second each way.
"""

import asyncio
import hashlib
import json
import os
import sys
import time

from aioice import Connection
from aioice.ice import TransportPolicy

PAYLOADS = 200
HOLD_SECONDS = int(os.environ.get("HOLD_SECONDS", "0"))


def payload(direction: str, number: int) -> bytes:
    """Bytes that only this direction and number have, of a length that varies from 32 to 1,200."""
    seed = hashlib.sha256(f"{direction} {number}".encode()).digest()
    length = 32 + (number * 97) % 1169
    return (seed * (length // len(seed) + 1))[:length]


def pair_of(connection: Connection) -> dict:
    pair = connection._nominated[1]
    return {
        "local": pair.local_candidate.type,
        "local_addr": f"{pair.local_candidate.host}:{pair.local_candidate.port}",
        "remote": pair.remote_candidate.type,
        "remote_addr": f"{pair.remote_candidate.host}:{pair.remote_candidate.port}",
    }


async def passes(sender: Connection, receiver: Connection, direction: str, number: int) -> bool:
    """Whether a payload arrives as it was sent."""
    expected = payload(direction, number)
    await sender.send(expected)
    return await asyncio.wait_for(receiver.recv(), timeout=10) == expected


async def exchange(sender: Connection, receiver: Connection, direction: str) -> int:
    """Sends one payload after the other and counts those that arrive whole and in order."""
    return sum([await passes(sender, receiver, direction, number) for number in range(PAYLOADS)])


async def hold(caller: Connection, callee: Connection) -> dict:
    """Keeps the call alive with payloads both ways and counts them."""
    ends_at = time.monotonic() + HOLD_SECONDS
    held = {"sent": 0, "matched": 0}
    while time.monotonic() < ends_at:
        for ends, direction in (((caller, callee), "there"), ((callee, caller), "back")):
            held["matched"] += await passes(*ends, direction, held["sent"])
            held["sent"] += 1
        await asyncio.sleep(1)
    return held


async def main() -> None:
    host, port, username, password, transport, *direct = sys.argv[1:]
    shared = {
        "turn_server": (host, int(port)),
        "turn_username": username,
        "turn_password": password,
        "turn_transport": "udp" if transport == "udp" else "tcp",
        "turn_ssl": transport == "tls",
        "use_ipv6": False,
        "transport_policy": TransportPolicy.RELAY,
    }
    caller = Connection(ice_controlling=True, **shared)
    callee = Connection(ice_controlling=False, **({"use_ipv6": False} if direct else shared))
    ends = (caller, callee)
    await asyncio.gather(*(end.gather_candidates() for end in ends))
    for end, other in (ends, ends[::-1]):
        for candidate in other.local_candidates:
            await end.add_remote_candidate(candidate)
        await end.add_remote_candidate(None)
        end.remote_username, end.remote_password = other.local_username, other.local_password
    await asyncio.gather(*(end.connect() for end in ends))
    result = {
        "payloads": PAYLOADS,
        "there": await exchange(caller, callee, "there"),
        "back": await exchange(callee, caller, "back"),
        "held": await hold(caller, callee),
        "caller": pair_of(caller),
        "callee": pair_of(callee),
    }
    await asyncio.gather(*(end.close() for end in ends))
    print(json.dumps(result))


asyncio.run(asyncio.wait_for(main(), timeout=60 + HOLD_SECONDS))
