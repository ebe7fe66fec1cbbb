// SPDX-License-Identifier: MIT OR Apache-2.0
//
// The sk_lookup program that gives the datagrams to many ports to few sockets.
//
// The process writes into the table of ports which of its sockets gets what arrives there. A datagram to another port
// goes on as if this program did not exist.
//
// All ports of a socket share its receive buffer. Therefore a port may have `BUDGET` datagrams in it: their number is
// counted from the last time that the process has found the socket empty.
//
// The structs are those of ../src/steer.rs. The loader compares both through the BTF of this object.

#include "kernel.h"

#define AF_INET 2
#define AF_INET6 10
#define PROTOCOL_UDP 17
#define PORTS 65536
#define BUDGET 512

// The lower half of `owner` is the socket's number plus one, 0 without a socket.
#define OWNER_SOCKET 0xffff
#define OWNER_HELD 0x10000 // it is taken, and has no socket yet: what arrives is dropped
#define OWNER_PASSED 0x20000 // another program has the port

struct ip {
	__u32 word[4]; // network byte order; IPv4 in the last one
};

struct port {
	__u32 owner;
	__u32 drain; // the socket's drain that `count` is counted from
	__u32 count, pad;
};

struct queue {
	__u32 drain; // rises when the process has found the socket empty
	__u32 pad[15];
	__u64 over; // datagrams over the budget of their port
	__u64 pad2[7];
};

// The loader sets the sizes.
MAP(places, BPF_MAP_TYPE_HASH, struct ip, __u32, 1, BPF_F_RDONLY_PROG);
MAP(ports, BPF_MAP_TYPE_ARRAY, __u32, struct port, 1, BPF_F_MMAPABLE);
// The first one is not used.
MAP(queues, BPF_MAP_TYPE_ARRAY, __u32, struct queue, 1, BPF_F_MMAPABLE);
MAP(sockets, BPF_MAP_TYPE_SOCKMAP, __u32, __u32, 1, 0);

SEC("sk_lookup")
int steer(struct bpf_sk_lookup *ctx)
{
	// Of whole words: without CAP_PERFMON the verifier of Linux 6.1 rejects half of a word where a pointer was.
	__u64 to[2] = {};
	_Static_assert(sizeof(to) == sizeof(struct ip), "a key");

	if (ctx->protocol != PROTOCOL_UDP)
		return SK_PASS;
	if (ctx->family == AF_INET) {
		__u32 word = ctx->local_ip4;
		// Without it, clang calculates one address of a field for both branches, which the verifier forbids.
		asm volatile("" : "+r"(word));
		to[1] = (__u64)word << 32;
	} else if (ctx->family == AF_INET6) {
		to[0] = ctx->local_ip6[0] | (__u64)ctx->local_ip6[1] << 32;
		to[1] = ctx->local_ip6[2] | (__u64)ctx->local_ip6[3] << 32;
	} else {
		return SK_PASS;
	}
	__u32 *place = bpf_map_lookup_elem(&places, to);
	if (!place)
		return SK_PASS;
	__u32 index = *place * PORTS + (ctx->local_port & (PORTS - 1));
	struct port *port = bpf_map_lookup_elem(&ports, &index);
	if (!port)
		return SK_PASS;
	__u32 owner = port->owner;
	if (!owner || owner & OWNER_PASSED)
		return SK_PASS;

	if (owner & OWNER_HELD)
		return SK_DROP;
	__u32 number = owner & OWNER_SOCKET;
	struct queue *queue = bpf_map_lookup_elem(&queues, &number);
	if (!queue)
		return SK_DROP;
	// Two CPUs may count one datagram instead of two here: the budget is no exact number.
	__u32 drain = queue->drain;
	if (port->drain != drain) {
		port->drain = drain;
		port->count = 0;
	}
	if (port->count >= BUDGET) {
		__sync_fetch_and_add(&queue->over, 1);
		return SK_DROP;
	}
	port->count++;

	number--;
	struct bpf_sock *socket = bpf_map_lookup_elem(&sockets, &number);
	if (!socket)
		return SK_DROP;
	// The socket alone, without the others of its port.
	long failed = bpf_sk_assign(ctx, socket, BPF_SK_LOOKUP_F_NO_REUSEPORT);
	bpf_sk_release(socket);
	return failed ? SK_DROP : SK_PASS;
}

char LICENSE[] SEC("license") = "MIT";
