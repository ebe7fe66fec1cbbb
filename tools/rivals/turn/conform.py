#!/usr/bin/env python3
"""Judges truetick, Debian's coturn, pion and turn-rs with `truetick conform` in one run, and writes docs/conformance.md.

    cargo build -p truetick
    python3 tools/rivals/turn/conform.py [--truetick PATH] [--turn-rs PATH] [--pion PATH]

Without a path, turn-server is installed by cargo and pion built by go under target/conformance. A server that is
missing is named in the document with the reason. Needs openssl for the certificate.
"""

import argparse
import datetime
import json
import pathlib
import platform
import subprocess
import tempfile
import textwrap
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]
DOCUMENT = ROOT / "docs/conformance.md"
BUILT = ROOT / "target/conformance"
BEGIN, END = "<!-- BEGIN: python3 tools/rivals/turn/conform.py -->\n", "<!-- END -->"
REALM, USER, OTHER = "example.org", "ann:correct-horse", "bob:battery-staple"
TURN_RS = "4.1.5"
LETTERS = {"passed": "P", "failed": "F", "absent": "a", "not-judged": "n"}
TRANSPORTS = ("udp", "tcp", "tls")
# What Debian's configuration file of coturn sets.
DEBIAN = ["--no-rfc5780", "--no-stun-backward-compatibility", "--response-origin-only-with-rfc5780"]


class Missing(Exception):
    """A server cannot be had here."""


def first_line(*command):
    try:
        output = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    except OSError as error:
        raise Missing(str(error)) from error
    return output.splitlines()[0] if output else "unknown"


def built(command, cwd, reason):
    try:
        done = subprocess.run(command, cwd=cwd, stdout=subprocess.DEVNULL, check=False)
    except OSError as error:
        raise Missing(str(error)) from error
    if done.returncode:
        raise Missing(reason)


def truetick(places, ip, folder):
    command = [places.truetick, "--log-level", "error", "turn", "--workers", "2", "--realm", REALM]
    command += ["--listen", f"{ip}:3478", "--listen-tls", f"{ip}:5349", "--relay-ip", ip]
    command += ["--cert", folder / "cert.pem", "--key", folder / "key.pem", "--allow-own-host", "127.0.0.0/8"]
    return command + ["--user", USER, "--user", OTHER], first_line(places.truetick, "--version")


def coturn(_places, ip, folder):
    version = first_line("turnserver", "--version")
    command = ["turnserver", "-n", "-a", "-r", REALM, "-L", ip, "-E", ip, "-p", "3478", "--tls-listening-port", "5349"]
    command += ["--cert", folder / "cert.pem", "--pkey", folder / "key.pem", "--user", USER, "--user", OTHER]
    command += ["--allow-loopback-peers", "--no-cli", "--cli-password", "x", "--no-dtls", *DEBIAN]
    return command + ["--pidfile", folder / "coturn.pid", "-l", folder / "coturn.log"], f"coturn {version} (Debian)"


def pion(places, ip, _folder):
    program = places.pion or BUILT / "pion-turn"
    if not places.pion:
        source = ROOT / "tools/rivals/turn/rivals/pion"
        built(["go", "build", "-mod=readonly", "-o", program, "."], source, "it does not build here")
    name, password = USER.split(":")
    return [program, f"{ip}:3478", ip, REALM, name, password], first_line(program, "version")


def turn_rs(places, ip, folder):
    program = places.turn_rs or BUILT / "bin/turn-server"
    if not places.turn_rs and not program.is_file():
        command = ["cargo", "install", "turn-server", "--version", TURN_RS, "--locked", "--root", BUILT]
        command += ["--no-default-features", "--features", "udp,tcp"]
        built(command, BUILT, "it does not build here")
    interface = '[[server.interfaces]]\ntransport = "{}"\nlisten = "{}:3478"\nexternal = "{}:3478"\n\n'
    users = "\n".join('{} = "{}"'.format(*user.split(":")) for user in (USER, OTHER))
    config = folder / "turn-rs.toml"
    config.write_text(
        f'[server]\nrealm = "{REALM}"\n\n'
        + "".join(interface.format(transport, ip, ip) for transport in ("udp", "tcp"))
        + f"[auth.static-credentials]\n{users}\n"
    )
    return [program, "--config", config], f"turn-server {TURN_RS} (crates.io, features udp and tcp)"


SERVERS = {"truetick": truetick, "coturn": coturn, "pion": pion, "turn-rs": turn_rs}
IPS = {name: f"127.0.20.{number}" for number, name in enumerate(SERVERS, start=1)}


def certificate(folder):
    names = ",".join(f"IP:{ip}" for ip in IPS.values())
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "30", "-subj", "/CN=localhost"]
    command += ["-addext", f"subjectAltName={names}", "-addext", "basicConstraints=critical,CA:FALSE"]
    command += ["-keyout", folder / "key.pem", "-out", folder / "cert.pem"]
    subprocess.run(command, check=True, capture_output=True)
    (folder / "key.pem").chmod(0o600)


def judge(places, name, folder):
    """Starts a server, judges it and returns its version and rows."""
    command, version = SERVERS[name](places, IPS[name], folder)
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        conform = [places.truetick, "conform", f"turn:{IPS[name]}", "--json", "--user-file", folder / "user"]
        conform += ["--authority-file", folder / "cert.pem"]
        if name != "pion":  # Its example has one user.
            conform += ["--other-user-file", folder / "other"]
        reach = [places.truetick, "conform", f"turn:{IPS[name]}?transport=udp", "--only", "R016"]
        for _ in range(100):
            if subprocess.run(reach, capture_output=True, check=False).returncode == 0:
                break
            time.sleep(0.1)
        else:
            raise Missing("it does not answer")
        output = subprocess.run(conform, capture_output=True, text=True, check=False)
        return version, json.loads(output.stdout)["rows"]
    finally:
        server.terminate()
        try:
            server.wait(timeout=5)
        except subprocess.TimeoutExpired:
            server.kill()


def cell(rows, key):
    found = {row["transport"]: row for row in rows if (row["id"], row["title"]) == key}
    offered = {row["transport"] for row in rows if row["title"] != "the server answers over this transport"}
    letters = (LETTERS[found[t]["result"]] if t in found else "." for t in TRANSPORTS if t in offered)
    return "".join(letters)


def summary(results):
    yield "| server | version | passed | failed | absent | not judged |"
    yield "|---|---|---|---|---|---|"
    for name, (version, rows) in results.items():
        counts = (sum(row["result"] == result for row in rows) for result in LETTERS)
        yield f"| {name} | {version} | {' | '.join(map(str, counts))} |"


def table(results):
    yield f"| id | level | check | {' | '.join(results)} |"
    yield "|---|---|---|" + "---|" * len(results)
    seen = {}
    for _, rows in results.values():
        for row in rows:
            if row["title"] != "the server answers over this transport":
                seen.setdefault((row["id"], row["title"]), row["level"])
    for key, level in seen.items():
        cells = " | ".join(cell(rows, key) for _, rows in results.values())
        yield f"| {key[0]} | {level} | {key[1]} | {cells} |"


def failures(results):
    for name, (_, rows) in results.items():
        failed = {}
        for row in rows:
            if row["result"] == "failed":
                key = (row["id"], row["title"], row["expected"], row["received"])
                failed.setdefault(key, []).append(row["transport"])
        yield f"### {name}"
        yield ""
        if not failed:
            yield "Nothing failed."
        for (id_, title, expected, received), transports in failed.items():
            text = f"{id_} over {', '.join(transports)}, {title}: expected {expected}; received {received}"
            yield textwrap.fill(text, 116, initial_indent="- ", subsequent_indent="  ", break_on_hyphens=False)
        yield ""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--truetick", type=pathlib.Path, default=ROOT / "target/debug/truetick")
    parser.add_argument("--turn-rs", type=pathlib.Path)
    parser.add_argument("--pion", type=pathlib.Path)
    places = parser.parse_args()
    BUILT.mkdir(parents=True, exist_ok=True)
    results, missing = {}, {}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        certificate(folder)
        for file, text in (("user", USER), ("other", OTHER)):
            (folder / file).touch(mode=0o600)
            (folder / file).write_text(text + "\n")
        for server in SERVERS:
            print(f"{server} ...", flush=True)
            try:
                results[server] = judge(places, server, folder)
            except Missing as reason:
                missing[server] = reason
    today = datetime.date.today().isoformat()
    lines = [f"{today}, {platform.system()} {platform.machine()}, over loopback.", "", *summary(results), ""]
    lines += [f"{server} is missing: {reason}." for server, reason in missing.items()]
    lines += [*table(results), "", "## Failures", "", *failures(results)]
    before, rest = DOCUMENT.read_text().split(BEGIN)
    DOCUMENT.write_text(before + BEGIN + "\n" + "\n".join(lines) + "\n" + END + rest.split(END, 1)[1])


if __name__ == "__main__":
    main()
