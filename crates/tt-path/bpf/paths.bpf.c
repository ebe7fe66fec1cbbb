// SPDX-License-Identifier: MIT OR Apache-2.0
//
// The XDP program that relays the packets of bound TURN channels.
//
// ChannelData from a client loses its header and goes to the peer (RFC 8656 section 12.6); a datagram from a peer gets a
// header and goes to the client (section 12.7). Both ends have the same address family. IP fields are those of RFC 8656
// section 14. A packet that fits no rule exactly goes up to the sockets unchanged (XDP_PASS), and its reason is
// counted. The one packet that is dropped here is one over its user's rate.
//
// The structs are those of ../src/layout.rs. The loader compares both through the BTF of this object.

#include "kernel.h"

#define ETH_LEN 14
#define ETH_FRAME_MIN 60
#define IP4_LEN 20
#define IP6_LEN 40
#define UDP_LEN 8
#define CHANNEL_LEN 4
#define PROTOCOL_UDP 17
#define INTERFACES 64
#define NO_METER 0xffffffff
#define METER_TRIES 4
#define METER_DEPTH_NS 1000000000ULL
#define HEARTBEAT_NS_MAX 2000000000ULL
#define PROOF_PACKETS 64
#define CHUNK_LEN 128
#define CHUNKS 80 // 10,240 bytes: jumbo frames
#define SAMPLE_MASK 4095 // one packet in 4,096 is verified for life

#define be16(x) ((__u16)__builtin_bswap16(x))
#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

// Why a packet was not relayed; 0 is not counted.
enum reason {
	NOT_OURS = 0,
	RELAYED = 1,
	TAGGED = 2,
	OPTIONS = 3,
	FRAGMENT = 4,
	EXTENSION = 5,
	LENGTH = 6,
	NOT_CHANNEL = 7,
	INTERFACE = 8,
	OTHER_HOST = 9,
	NO_FLOW = 10,
	STALE = 11,
	HOP_LIMIT = 12,
	ZERO_CHECKSUM = 13,
	PARTIAL_CHECKSUM = 14,
	BAD_CHECKSUM = 15,
	NO_HOP = 16,
	TOO_BIG = 17,
	TOO_SHORT = 18,
	PROVING = 19,
	UNPROVEN = 20,
	CONTENDED = 21,
	BANDWIDTH = 22,
	HEADROOM = 23,
	LOST = 24, // cannot be: the frame became too short during the rewrite
};

enum port { PORT_OTHER = 0, PORT_LISTENER = 1, PORT_RELAY = 2 };
enum kind { KIND_NONE = 0, KIND_STRIP = 1, KIND_ADD = 2 };
enum state { STATE_OFF = 0, STATE_PROVING = 1, STATE_PROVEN = 2, STATE_UNPROVEN = 3 };

// Fields of packets are in network byte order, as are those of keys, and of flows up to chan.

struct key4 {
	__u32 from, to;
	__u16 fport, tport, chan, iface;
};

struct key6 {
	__u32 from[4], to[4];
	__u16 fport, tport, chan, iface;
};

struct flow {
	__u32 src[4], dst[4]; // IPv4 in the last word
	__u16 sport, dport, chan;
	__u16 csum; // what the new addresses, ports and channel add to the UDP checksum's sum, in memory order
	__u32 path, meter;
	__u64 until; // CLOCK_MONOTONIC, ns
	__u32 epoch;
	__u16 hop;
	__u8 kind, family;
};

struct tally {
	__u64 packets, bytes, dropped_meter, pad;
};

struct meter {
	__u64 full_at; // CLOCK_MONOTONIC, ns
	__u64 byte_ns_fp24;
};

struct hop {
	__u16 dst[3], src[3];
	__u32 ifindex;
	__u16 mtu;
	__u8 valid, pad[5];
};

struct iface {
	__u32 ifindex, state;
	__u16 mac[3];
	__u16 redirects; // the device takes no XDP_TX: see drivers.rs
	__u32 seen, proven, checked, bad;
};

struct meta {
	__u64 on, epoch;
	__u64 heartbeat; // CLOCK_MONOTONIC, ns
	__u64 dscp; // a bit for each value that may leave; the others become 0
	enum reason unused; // brings the constants into the BTF, for the loader
	__u32 dump_ifindex; // where packets arrive that are copied; 0: anywhere
	__u64 dump_until; // CLOCK_MONOTONIC, ns; packets are copied until then
	__u64 dump_every;
};

struct ports {
	__u8 kind[65536];
};

// The loader sets the sizes of flows4, flows6, tallies and meters.
MAP(port_kind, BPF_MAP_TYPE_ARRAY, __u32, struct ports, 1, BPF_F_MMAPABLE);
MAP(flows4, BPF_MAP_TYPE_HASH, struct key4, struct flow, 1, BPF_F_NO_PREALLOC | BPF_F_RDONLY_PROG);
MAP(flows6, BPF_MAP_TYPE_HASH, struct key6, struct flow, 1, BPF_F_NO_PREALLOC | BPF_F_RDONLY_PROG);
MAP(tallies, BPF_MAP_TYPE_ARRAY, __u32, struct tally, 1, BPF_F_MMAPABLE);
MAP(meters, BPF_MAP_TYPE_ARRAY, __u32, struct meter, 1, BPF_F_MMAPABLE);
MAP(hops, BPF_MAP_TYPE_ARRAY, __u32, struct hop, 256, BPF_F_RDONLY_PROG);
MAP(ifaces, BPF_MAP_TYPE_ARRAY, __u32, struct iface, INTERFACES, BPF_F_MMAPABLE);
MAP(reasons, BPF_MAP_TYPE_PERCPU_ARRAY, __u32, __u64, 32, 0);
MAP(meta, BPF_MAP_TYPE_ARRAY, __u32, struct meta, 1, BPF_F_MMAPABLE);

#include "dump.h"

struct eth {
	__u16 dst[3], src[3], type;
};

struct ip4 {
	__u8 version_ihl, tos;
	__u16 len, id, frag;
	__u8 ttl, protocol;
	__u16 csum;
	__u32 src, dst;
};

struct ip6 {
	__u32 version_class_label;
	__u16 payload_len;
	__u8 next, hop_limit;
	__u32 src[4], dst[4];
};

struct udp {
	__u16 sport, dport, len, csum;
};

struct channel {
	__u16 number, len;
};

// Ones' complement sums of 16-bit words in memory order (RFC 1071).

// An index below 65,536. The verifier of Linux 6.1 knows no bound of swapped bytes, and the compiler would leave the mask
// out.
static __always_inline __u64 port_index(__u16 port)
{
	__u64 index = be16(port);
	asm("" : "+r"(index));
	return index & 0xffff;
}

// Keys are made of whole words: without CAP_PERFMON the verifier of Linux 6.1 rejects half of a word where a pointer was.
static __always_inline __u64 pair(__u32 low, __u32 high)
{
	return low | (__u64)high << 32;
}

static __always_inline __u16 fold(__u64 sum)
{
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (sum & 0xffff) + (sum >> 16);
}

static __always_inline __u64 sum4(const struct ip4 *ip)
{
	const __u32 *words = (const __u32 *)ip;
	return (__u64)words[0] + words[1] + words[2] + words[3] + words[4];
}

static __always_inline __u64 sum_address(const __u32 *words)
{
	return (__u64)words[0] + words[1] + words[2] + words[3];
}

// No loop: for each condition that it knows, the verifier of Linux 6.1 follows the other branch too, unless the process has
// CAP_PERFMON.
#define ADD_CHUNK(i) \
	if (chunks <= (i)) \
		goto rest; \
	if (bpf_xdp_load_bytes(ctx, offset + (i) * CHUNK_LEN, chunk, CHUNK_LEN) < 0) \
		return -1; \
	sum += (__u32)bpf_csum_diff(0, 0, chunk, CHUNK_LEN, 0);
#define ADD_5(i) ADD_CHUNK(i) ADD_CHUNK(i + 1) ADD_CHUNK(i + 2) ADD_CHUNK(i + 3) ADD_CHUNK(i + 4)
#define ADD_20(i) ADD_5(i) ADD_5(i + 5) ADD_5(i + 10) ADD_5(i + 15)

// The sum of `len` bytes at `offset`, at least one, or -1 if the frame is shorter. Not static: the verifier looks at it once
// only. The bytes are copied, because a pointer into the packet with a variable offset would need CAP_PERFMON.
__attribute__((noinline)) __s64 sum_bytes(struct xdp_md *ctx, __u32 offset, __u32 len)
{
	__u64 chunk[CHUNK_LEN / 8], sum = 0;
	const __u32 last = len - 1;
	if (last >= CHUNKS * CHUNK_LEN - 1)
		return -1;
	const __u64 chunks = last / CHUNK_LEN;
	ADD_20(0) ADD_20(20) ADD_20(40) ADD_20(60)
rest:
	__builtin_memset(chunk, 0, sizeof(chunk));
	// From 1 to CHUNK_LEN by its form: a comparison with zero proves nothing to the verifier of Linux 6.1.
	const __u64 rest_len = (last & (CHUNK_LEN - 1)) + 1;
	if (bpf_xdp_load_bytes(ctx, offset + chunks * CHUNK_LEN, chunk, rest_len) < 0)
		return -1;
	return sum + (__u32)bpf_csum_diff(0, 0, chunk, CHUNK_LEN, 0);
}

// Takes `bytes` from the bucket: RELAYED, BANDWIDTH or CONTENDED. A full bucket may owe more than it holds.
static __always_inline enum reason spend(struct meter *meter, __u64 now, __u64 bytes, __u64 *cost)
{
	__u64 rate = meter->byte_ns_fp24;
	*cost = bytes * (rate >> 24) + ((bytes * (rate & 0xffffff)) >> 24);
#pragma unroll
	for (int i = 0; i < METER_TRIES; i++) {
		__u64 full_at = *(volatile __u64 *)&meter->full_at;
		__u64 later = (full_at > now ? full_at : now) + *cost;
		if (full_at > now && later - now > METER_DEPTH_NS)
			return BANDWIDTH;
		if (__sync_val_compare_and_swap(&meter->full_at, full_at, later) == full_at)
			return RELAYED;
	}
	return CONTENDED;
}

// Judges the checksum of a candidate: RELAYED, or why it goes up. `pseudo` is the sum of the pseudo-header.
static __always_inline enum reason prove(struct xdp_md *ctx, struct iface *iface, __u64 pseudo, __u32 offset,
					 __u32 len, __u16 csum)
{
	__u32 state = *(volatile __u32 *)&iface->state;
	if (UNLIKELY(state != STATE_PROVING && state != STATE_PROVEN))
		return state == STATE_UNPROVEN ? UNPROVEN : INTERFACE;
	// A sender that leaves the checksum to its device has stored the pseudo-header's sum.
	if (UNLIKELY(csum && csum == fold(pseudo))) {
		__sync_fetch_and_add(&iface->bad, 1);
		if (state == STATE_PROVING)
			*(volatile __u32 *)&iface->state = STATE_UNPROVEN;
		return PARTIAL_CHECKSUM;
	}
	if (LIKELY(state == STATE_PROVEN)) {
		// Not atomic: a lost count moves the next sample.
		__u32 seen = ++iface->seen;
		if (LIKELY(!csum || (seen & SAMPLE_MASK)))
			return RELAYED;
	}
	if (!csum)
		return PROVING;
	__s64 sum = sum_bytes(ctx, offset, len);
	__sync_fetch_and_add(&iface->checked, 1);
	if (sum < 0 || fold(sum + pseudo) != 0xffff)
		return BAD_CHECKSUM;
	if (state == STATE_PROVEN)
		return RELAYED;
	__sync_fetch_and_add(&iface->proven, 1);
	if (*(volatile __u32 *)&iface->proven >= PROOF_PACKETS)
		*(volatile __u32 *)&iface->state = STATE_PROVEN;
	return PROVING;
}

// Relays one packet, or says why not. `ifindex` is where it is redirected to; 0: it leaves where it came from.
static __always_inline enum reason relay(struct xdp_md *ctx, const int is_ip6, __u32 *ifindex)
{
	const __u32 ip_len = is_ip6 ? IP6_LEN : IP4_LEN, heads_len = ETH_LEN + ip_len + UDP_LEN;
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	__u32 zero = 0, udp_room;
	struct eth *eth = data;
	struct ip4 *ip4 = data + ETH_LEN;
	struct ip6 *ip6 = data + ETH_LEN;
	struct udp *udp = data + ETH_LEN + ip_len;
	if (data + heads_len > end)
		return NOT_OURS;
	if (is_ip6) {
		if ((*(__u8 *)ip6 >> 4) != 6)
			return NOT_OURS;
		if (ip6->next == 44)
			return FRAGMENT;
		if (ip6->next == 0 || ip6->next == 43 || ip6->next == 60)
			return EXTENSION;
		if (ip6->next != PROTOCOL_UDP)
			return NOT_OURS;
		udp_room = be16(ip6->payload_len);
	} else {
		if ((ip4->version_ihl >> 4) != 4 || ip4->protocol != PROTOCOL_UDP)
			return NOT_OURS;
		if (ip4->version_ihl != 0x45)
			return OPTIONS;
		if (ip4->frag & be16(0x3fff))
			return FRAGMENT;
		udp_room = be16(ip4->len) - IP4_LEN;
	}
	struct ports *ports = bpf_map_lookup_elem(&port_kind, &zero);
	if (!ports)
		return NOT_OURS;
	const __u8 port = ports->kind[port_index(udp->dport)];
	if (port != PORT_LISTENER && port != PORT_RELAY)
		return NOT_OURS;

	const __u16 udp_len = be16(udp->len);
	// Not the difference of the pointers: that would need CAP_PERFMON.
	if (udp_len != udp_room || udp_len < UDP_LEN || ETH_LEN + ip_len + udp_len > bpf_xdp_get_buff_len(ctx))
		return LENGTH;
	if (!is_ip6 && fold(sum4(ip4)) != 0xffff)
		return BAD_CHECKSUM;
	struct channel *channel = (void *)(udp + 1);
	__u16 chan = 0, channel_len = 0;
	if (port == PORT_LISTENER) {
		if ((void *)(channel + 1) > end || udp_len < UDP_LEN + CHANNEL_LEN)
			return NOT_CHANNEL;
		chan = channel->number;
		channel_len = channel->len;
		// 0x4000 to 0x7FFF (RFC 5766 section 11): a server may bind more than RFC 8656's channels.
		if ((be16(chan) >> 14) != 1 || be16(channel_len) + UDP_LEN + CHANNEL_LEN != udp_len)
			return NOT_CHANNEL;
	}

	__u32 slot = ctx->ingress_ifindex % INTERFACES;
	struct iface *iface = bpf_map_lookup_elem(&ifaces, &slot);
	if (!iface || iface->ifindex != ctx->ingress_ifindex)
		return INTERFACE;
	if (eth->dst[0] != iface->mac[0] || eth->dst[1] != iface->mac[1] || eth->dst[2] != iface->mac[2])
		return OTHER_HOST;
	struct flow *flow;
	if (is_ip6) {
		const __u64 ends = pair(udp->sport | (__u32)udp->dport << 16, chan | slot << 16);
		const __u64 key6[] = { pair(ip6->src[0], ip6->src[1]), pair(ip6->src[2], ip6->src[3]),
				       pair(ip6->dst[0], ip6->dst[1]), pair(ip6->dst[2], ip6->dst[3]), ends };
		_Static_assert(sizeof(key6) == sizeof(struct key6), "a key");
		flow = bpf_map_lookup_elem(&flows6, key6);
	} else {
		const __u64 ends = pair(udp->sport | (__u32)udp->dport << 16, chan | slot << 16);
		const __u64 key4[] = { pair(ip4->src, ip4->dst), ends };
		_Static_assert(sizeof(key4) == sizeof(struct key4), "a key");
		flow = bpf_map_lookup_elem(&flows4, key4);
	}
	const int is_strip = port == PORT_LISTENER;
	if (!flow || flow->kind != (is_strip ? KIND_STRIP : KIND_ADD) || flow->family != (is_ip6 ? 6 : 4))
		return NO_FLOW;
	struct meta *state = bpf_map_lookup_elem(&meta, &zero);
	const __u64 now = bpf_ktime_get_coarse_ns();
	if (!state || !state->on || flow->epoch != state->epoch || flow->until <= now ||
	    state->heartbeat + HEARTBEAT_NS_MAX <= now)
		return STALE;

	const __u8 hops_left = is_ip6 ? ip6->hop_limit : ip4->ttl;
	if (hops_left <= 1)
		return HOP_LIMIT;
	const __u16 csum = udp->csum;
	if (!csum && (is_ip6 || !is_strip))
		return ZERO_CHECKSUM;
	__u64 hop_index = flow->hop;
	struct hop *hop = bpf_map_lookup_elem(&hops, &hop_index);
	if (!hop || !hop->valid)
		return NO_HOP;
	const __u16 new_udp_len = is_strip ? udp_len - CHANNEL_LEN : udp_len + CHANNEL_LEN;
	if (ip_len + new_udp_len > hop->mtu)
		return TOO_BIG;
	if (ETH_LEN + ip_len + new_udp_len < ETH_FRAME_MIN)
		return TOO_SHORT;
	const __u64 pseudo = (is_ip6 ? sum_address(ip6->src) + sum_address(ip6->dst) : (__u64)ip4->src + ip4->dst) +
			     be16(PROTOCOL_UDP) + be16(udp_len);
	enum reason reason = prove(ctx, iface, pseudo, ETH_LEN + ip_len, udp_len, csum);
	if (UNLIKELY(reason != RELAYED))
		return reason;

	__u64 path = flow->path, meter_index = flow->meter;
	struct tally *tally = bpf_map_lookup_elem(&tallies, &path);
	if (!tally)
		return NO_FLOW;
	__u64 cost = 0;
	if (meter_index != NO_METER) {
		struct meter *meter = bpf_map_lookup_elem(&meters, &meter_index);
		if (!meter)
			return NO_FLOW;
		reason = spend(meter, now, ip_len + new_udp_len, &cost);
		if (UNLIKELY(reason == BANDWIDTH)) {
			__sync_fetch_and_add(&tally->dropped_meter, 1);
			return BANDWIDTH;
		}
		if (UNLIKELY(reason != RELAYED))
			return reason;
	}

	// All that the new headers take from the old ones, since the pointers end here.
	__u8 tos = is_ip6 ? __builtin_bswap32(ip6->version_class_label) >> 20 : ip4->tos;
	if (!(state->dscp >> (tos >> 2) & 1))
		tos &= 3; // ECN
	const __u16 dont_fragment = is_ip6 ? 0 : ip4->frag & be16(0x4000);
	const __u16 payload_len = is_strip ? udp_len - UDP_LEN - CHANNEL_LEN : udp_len - UDP_LEN;
	__u16 new_csum = 0;
	if (csum) {
		// RFC 1624: the length is in the pseudo-header, too, and the channel's header is in the payload.
		__u64 sum = (__u64)(__u16)~csum + flow->csum + 2 * ((__u64)be16(new_udp_len) + (__u16)~be16(udp_len));
		sum += is_strip ? (__u16)~channel_len : be16(payload_len);
		new_csum = ~fold(sum);
		if (!new_csum)
			new_csum = 0xffff;
	}
	const int is_dumped = UNLIKELY(state->dump_until > now);
	if (is_dumped)
		copy_for_dump(ctx, FORM_RECEIVED);
	if (UNLIKELY(bpf_xdp_adjust_head(ctx, is_strip ? CHANNEL_LEN : -CHANNEL_LEN))) {
		// Not the pointer of before: it may be null, and Linux 6.1 follows the branch that a known null does not take.
		struct meter *meter = bpf_map_lookup_elem(&meters, &meter_index);
		if (meter)
			__sync_fetch_and_add(&meter->full_at, -cost);
		return HEADROOM;
	}
	data = (void *)(long)ctx->data, end = (void *)(long)ctx->data_end;
	if (data + heads_len + CHANNEL_LEN > end && (!is_strip || data + heads_len > end))
		return LOST;
	eth = data, ip4 = data + ETH_LEN, ip6 = data + ETH_LEN, udp = data + ETH_LEN + ip_len;
	__builtin_memcpy(eth->dst, hop->dst, sizeof(eth->dst));
	__builtin_memcpy(eth->src, hop->src, sizeof(eth->src));
	if (is_ip6) {
		eth->type = be16(0x86dd);
		ip6->version_class_label = __builtin_bswap32(6U << 28 | (__u32)tos << 20);
		ip6->payload_len = be16(new_udp_len);
		ip6->next = PROTOCOL_UDP, ip6->hop_limit = hops_left - 1;
		__builtin_memcpy(ip6->src, flow->src, sizeof(ip6->src));
		__builtin_memcpy(ip6->dst, flow->dst, sizeof(ip6->dst));
	} else {
		eth->type = be16(0x0800);
		ip4->version_ihl = 0x45, ip4->tos = tos;
		ip4->len = be16(IP4_LEN + new_udp_len);
		// RFC 6864: the identification of what cannot be fragmented means nothing.
		ip4->id = dont_fragment ? 0 : bpf_get_prandom_u32();
		ip4->frag = dont_fragment;
		ip4->ttl = hops_left - 1, ip4->protocol = PROTOCOL_UDP;
		ip4->csum = 0;
		ip4->src = flow->src[3], ip4->dst = flow->dst[3];
		ip4->csum = ~fold(sum4(ip4));
	}
	udp->sport = flow->sport, udp->dport = flow->dport;
	udp->len = be16(new_udp_len), udp->csum = new_csum;
	if (!is_strip) {
		channel = (void *)(udp + 1);
		if ((void *)(channel + 1) > end)
			return LOST;
		channel->number = flow->chan, channel->len = be16(payload_len);
	}
	if (is_dumped)
		copy_for_dump(ctx, FORM_SENT);
	__sync_fetch_and_add(&tally->packets, 1);
	__sync_fetch_and_add(&tally->bytes, payload_len);
	*ifindex = hop->ifindex == ctx->ingress_ifindex && !iface->redirects ? 0 : hop->ifindex;
	return RELAYED;
}

SEC("xdp")
int paths(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct eth *eth = data;
	__u32 ifindex = 0;
	enum reason reason = NOT_OURS;
	if (data + ETH_LEN > end)
		return XDP_PASS;
	if (eth->type == be16(0x0800))
		reason = relay(ctx, 0, &ifindex);
	else if (eth->type == be16(0x86dd))
		reason = relay(ctx, 1, &ifindex);
	else if (eth->type == be16(0x8100) || eth->type == be16(0x88a8))
		reason = TAGGED;
	if (LIKELY(reason == NOT_OURS))
		return XDP_PASS;
	__u64 *count = bpf_map_lookup_elem(&reasons, &reason);
	if (count)
		(*count)++;
	if (LIKELY(reason == RELAYED))
		return ifindex ? bpf_redirect(ifindex, 0) : XDP_TX;
	return reason == BANDWIDTH ? XDP_DROP : reason == LOST ? XDP_ABORTED : XDP_PASS;
}

char LICENSE[] SEC("license") = "MIT";
