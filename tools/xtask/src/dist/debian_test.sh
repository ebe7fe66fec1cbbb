#!/bin/sh
# Installs, starts, uses, removes and purges the Debian package. It runs as root in new mount, network and process
# namespaces: sh debian_test.sh LOWER UPPER PACKAGE. LOWER is the root of a Debian system, which stays as it is; UPPER is
# an empty folder. Each line "ok: ..." is something that holds.
set -eu
lower=$1 upper=$2 package=$3
fail() { echo "FAILED: $*" >&2; exit 1; }

# A root above LOWER, whose changes are in memory.
mount --make-rprivate /
mount -t tmpfs tmpfs "$upper"
mkdir "$upper/changes" "$upper/work" "$upper/root"
mount -t overlay overlay -o "lowerdir=$lower,upperdir=$upper/changes,workdir=$upper/work" "$upper/root"
root=$upper/root
mount -t proc proc "$root/proc"
mount --bind /dev "$root/dev"
inside() { chroot "$root" env PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive LC_ALL=C "$@"; }
# A network with a public address of this machine alone.
ip link set lo up
ip address add 192.0.2.10/24 dev lo
ip route add default dev lo

cp "$package" "$root/package.deb"
inside dpkg -i /package.deb >/dev/null
[ "$(inside dpkg-query -W -f '${Status}' truetick)" = "install ok installed" ] || fail "dpkg does not know it"
inside truetick --version --verbose >/dev/null
for file in usr/share/man/man1/truetick-turn.1.gz usr/share/bash-completion/completions/truetick \
    usr/lib/sysusers.d/truetick.conf etc/truetick/truetick.toml usr/share/doc/truetick/copyright; do
    [ -s "$root/$file" ] || fail "$file is missing"
done
[ "$(stat -c '%a %U' "$root/etc/truetick/secrets")" = "600 truetick" ] ||
    [ "$(inside stat -c '%a %U' /etc/truetick/secrets)" = "600 truetick" ] || fail "the secret is not truetick's alone"
echo "ok: installed by dpkg -i"

# As systemd would: the user, the capability and the limits of the unit.
unit=$root/usr/lib/systemd/system/truetick.service
value() { sed -n "s/^$1=//p" "$unit"; }
capability=$(value AmbientCapabilities | sed 's/^CAP_//' | tr A-Z a-z)
# A container may not raise its limit.
descriptors=$(value LimitNOFILE)
prlimit "--nofile=$descriptors" true 2>/dev/null || descriptors=$(ulimit -H -n)
as_unit() {
    inside prlimit "--nofile=$descriptors" \
        setpriv --reuid "$(value User)" --regid "$(value Group)" --clear-groups --no-new-privs \
        --bounding-set "-all,+$capability" --inh-caps "-all,+$capability" --ambient-caps "-all,+$capability" "$@"
}
# shellcheck disable=SC2046 # words of a command line
as_unit $(value ExecStartPre) >/dev/null
log=$upper/log
: >"$log"
# shellcheck disable=SC2046
as_unit $(value ExecStart) >"$log" 2>&1 &
server=$!
tail -n +1 -f "$log" --pid=$server | grep -q -x -m 1 ready || fail "not ready: $(cat "$log")"
for comm in /proc/[0-9]*/comm; do
    [ "$(cat "$comm" 2>/dev/null)" != truetick ] || { pid=${comm#/proc/} && pid=${pid%/comm}; }
done
status=$(cat "/proc/$pid/status")
echo "$status" | grep -q '^NoNewPrivs:.1' || fail "it could gain privileges"
echo "$status" | grep -q '^CapEff:.0*400$' || fail "other capabilities than CAP_NET_BIND_SERVICE: $status"
threads=$(echo "$status" | sed -n 's/^Threads:\t//p')
[ "$threads" -le "$(value TasksMax)" ] || fail "$threads threads"
[ "$(sed -n 's/^Max open files *\([0-9]*\).*/\1/p' "/proc/$pid/limits")" = "$descriptors" ] || fail "descriptors"
echo "ok: started as $(value User) with CAP_NET_BIND_SERVICE alone, $descriptors descriptors, $threads threads"

secret=$(cat "$root/etc/truetick/secrets")
report=$(turnutils_uclient -y -s -c -u alice -W "$secret" -m 2 -n 20 -l 170 -z 10 -p 3478 192.0.2.10 2>&1) || true
echo "$report" | grep -q 'tot_send_msgs=40, tot_recv_msgs=40' || fail "uclient: $report $(cat "$log")"
echo "ok: turnutils_uclient relays 40 of 40 messages with a credential of the package's secret"
wrong=$(turnutils_uclient -y -s -c -u alice -W wrong -m 1 -n 1 -p 3478 192.0.2.10 2>&1) || true
case $wrong in *tot_recv_msgs=1*) fail "a wrong secret relays" ;; esac
echo "ok: a wrong secret relays nothing"
resident=$(sed -n 's/^VmHWM:\t *\([0-9]*\) kB/\1/p' "/proc/$pid/status")
echo "ok: at most $((resident / 1024)) MiB resident"

# Allocations of the client above may be alive: the second signal ends the drain.
kill -TERM "$pid"
tail -n +1 -f "$log" --pid=$server | grep -q -m 1 draining || fail "it does not drain: $(cat "$log")"
kill -TERM "$pid"
wait "$server" || [ $? = "$(value SuccessExitStatus)" ] || fail "it ended with another status"
echo "ok: it drains at SIGTERM and ends at the second one"

echo '# changed' >>"$root/etc/truetick/truetick.toml"
inside dpkg -r truetick >/dev/null 2>&1
[ ! -e "$root/usr/bin/truetick" ] || fail "the program is still there"
grep -q '# changed' "$root/etc/truetick/truetick.toml" || fail "the configuration is gone after dpkg -r"
[ -s "$root/etc/truetick/secrets" ] || fail "the secret is gone after dpkg -r"
echo "ok: removed: configuration and secret stay"
inside dpkg -P truetick >/dev/null 2>&1
left=$(find "$root/etc/truetick" "$root/usr/share/doc/truetick" "$root/var/log/truetick" 2>/dev/null || true)
[ -z "$left" ] || fail "left: $left"
echo "ok: purged: nothing of it is left"
