// SPDX-License-Identifier: MIT OR Apache-2.0
//
// The sk_lookup program that gives datagrams to relayed addresses to the sockets of the workers.
//
// A relayed address has no socket of its own: the process writes into the table of its ports which worker relays for
// it. A datagram to another port goes on as if this program did not exist. A port that may not receive now, because it
// is resting or reserved, has its datagrams dropped and counted.
//
// All relays of a worker share a receive buffer. Therefore a port may have `BUDGET` datagrams in it: their number is
// counted from the last time that the worker has found its socket empty.
//
// The structs are those of ../src/steer.rs. The loader compares both through the BTF of this object.

#include "kernel.h"

#define AF_INET 2
#define AF_INET6 10
#define PROTOCOL_UDP 17
#define PORTS 65536
#define BUDGET 512

// The lower half of `owner` is the worker's number plus one, 0 without a worker.
#define OWNER_WORKER 0xffff
#define OWNER_HELD 0x10000 // what arrives is dropped

struct ip {
	__u32 word[4]; // network byte order; IPv4 in the last one
};

struct port {
	__u32 owner;
	__u32 drain; // the worker's drain that `count` is counted from
	__u32 count, pad;
};

struct worker {
	__u32 drain; // rises when the worker has found its socket empty
	__u32 pad[15];
	__u64 held; // datagrams to ports that are held
	__u64 over; // datagrams over the budget of their port
	__u64 pad2[6];
};

// The loader sets the sizes.
MAP(places, BPF_MAP_TYPE_HASH, struct ip, __u32, 1, BPF_F_RDONLY_PROG);
MAP(ports, BPF_MAP_TYPE_ARRAY, __u32, struct port, 1, BPF_F_MMAPABLE);
MAP(workers, BPF_MAP_TYPE_ARRAY, __u32, struct worker, 1, BPF_F_MMAPABLE);
// Two of each worker: for IPv4 and for IPv6.
MAP(sockets, BPF_MAP_TYPE_SOCKMAP, __u32, __u32, 2, 0);

SEC("sk_lookup")
int steer(struct bpf_sk_lookup *ctx)
{
	struct ip to = {};

	if (ctx->protocol != PROTOCOL_UDP)
		return SK_PASS;
	if (ctx->family == AF_INET) {
		__u32 word = ctx->local_ip4;
		// Without it, clang calculates one address of a field for both branches, which the verifier forbids.
		asm volatile("" : "+r"(word));
		to.word[3] = word;
	} else if (ctx->family == AF_INET6) {
		to.word[0] = ctx->local_ip6[0];
		to.word[1] = ctx->local_ip6[1];
		to.word[2] = ctx->local_ip6[2];
		to.word[3] = ctx->local_ip6[3];
	} else {
		return SK_PASS;
	}
	__u32 *place = bpf_map_lookup_elem(&places, &to);
	if (!place)
		return SK_PASS;
	__u32 index = *place * PORTS + (ctx->local_port & (PORTS - 1));
	struct port *port = bpf_map_lookup_elem(&ports, &index);
	if (!port)
		return SK_PASS;
	__u32 owner = port->owner;
	if (!owner)
		return SK_PASS;

	__u32 number = owner & OWNER_WORKER;
	struct worker *worker = bpf_map_lookup_elem(&workers, &number);
	if (!worker)
		return SK_DROP;
	if (owner & OWNER_HELD) {
		__sync_fetch_and_add(&worker->held, 1);
		return SK_DROP;
	}
	// Two CPUs may count one datagram instead of two here: the budget is no exact number.
	__u32 drain = worker->drain;
	if (port->drain != drain) {
		port->drain = drain;
		port->count = 0;
	}
	if (port->count >= BUDGET) {
		__sync_fetch_and_add(&worker->over, 1);
		return SK_DROP;
	}
	port->count++;

	__u32 slot = (number - 1) * 2 + (ctx->family == AF_INET6);
	struct bpf_sock *socket = bpf_map_lookup_elem(&sockets, &slot);
	if (!socket)
		return SK_DROP;
	// The socket alone, without the others of its port.
	long failed = bpf_sk_assign(ctx, socket, BPF_SK_LOOKUP_F_NO_REUSEPORT);
	bpf_sk_release(socket);
	return failed ? SK_DROP : SK_PASS;
}

char LICENSE[] SEC("license") = "MIT";
