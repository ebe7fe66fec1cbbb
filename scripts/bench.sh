#!/bin/sh
# Runs a bench of truetick with the machine's settings for low latency, and puts back what it changed.
#
#   sudo scripts/bench.sh why --cpus 2,3
#   sudo scripts/bench.sh bench ring
#
# For the run: governor `performance`, turbo off, no deep sleep. Each setting before and during the run is printed; what
# cannot be set is named and left. TRUETICK names the program (default: target/release/truetick).
set -eu

program=${TRUETICK:-target/release/truetick}
[ $# -gt 0 ] || { echo "usage: $0 why|floor|bench [FLAGS]" >&2; exit 2; }
[ -x "$program" ] || { echo "$0: no $program: run cargo build --release, or set TRUETICK" >&2; exit 2; }

changed=$(mktemp)
restore() {
    status=$?
    trap - EXIT
    while read -r file value; do
        echo "$value" > "$file" && echo "put back: $file $value" >&2
    done < "$changed"
    rm -f "$changed"
    exit "$status"
}
trap restore EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# set_to FILE VALUE NAME
set_to() {
    if [ ! -e "$1" ]; then
        echo "$3: not visible here" >&2
        return 0
    fi
    before=$(cat "$1")
    if [ "$before" = "$2" ]; then
        echo "$3: $2 already" >&2
    elif echo "$2" 2>/dev/null > "$1"; then
        echo "$1 $before" >> "$changed"
        echo "$3: $2 (was $before)" >&2
    else
        echo "$3: stays $before (no permission)" >&2
    fi
}

found=
for governor in /sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor; do
    [ -e "$governor" ] || continue
    found=1
    set_to "$governor" performance "governor of $(basename "${governor%/cpufreq/*}")"
done
[ -n "$found" ] || echo "governor: not visible here" >&2
if [ -e /sys/devices/system/cpu/intel_pstate/no_turbo ]; then
    set_to /sys/devices/system/cpu/intel_pstate/no_turbo 1 "turbo off"
else
    set_to /sys/devices/system/cpu/cpufreq/boost 0 "turbo off"
fi
# The kernel holds CPUs out of deep sleep while this descriptor is open. In a container the device may be absent and /dev
# writable: a file of that name would hold nothing.
if [ ! -c /dev/cpu_dma_latency ]; then
    echo "deep sleep: not visible here" >&2
elif (exec 3> /dev/cpu_dma_latency) 2>/dev/null; then
    exec 3> /dev/cpu_dma_latency
    printf '\000\000\000\000' >&3
    echo "deep sleep: off" >&2
else
    echo "deep sleep: stays as it is (no permission)" >&2
fi
echo "kernel: $(uname -r); command line: $(cat /proc/cmdline)" >&2

"$program" "$@"
