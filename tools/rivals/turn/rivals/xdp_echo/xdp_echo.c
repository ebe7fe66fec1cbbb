// SPDX-License-Identifier: MIT OR Apache-2.0
//
// The floor of a relay by XDP: the smallest program that sends IPv4 datagrams of UDP back. It looks up nothing, checks
// nothing, and changes no length.

#include "kernel.h"

struct frame {
	__u16 to[3], from[3], type;
	__u8 version_ihl, tos;
	__u16 len, id, frag;
	__u8 ttl, protocol;
	__u16 csum;
	__u16 src[2], dst[2];
	__u16 sport, dport;
};

static __always_inline void swap(__u16 *one, __u16 *other, const int words)
{
#pragma unroll
	for (int i = 0; i < words; i++) {
		__u16 word = one[i];
		one[i] = other[i];
		other[i] = word;
	}
}

SEC("xdp") int xdp_echo(struct xdp_md *ctx)
{
	struct frame *frame = (void *)(long)ctx->data;
	if ((void *)(frame + 1) > (void *)(long)ctx->data_end || frame->type != 0x0008 || frame->protocol != 17)
		return XDP_PASS;
	swap(frame->to, frame->from, 3);
	swap(frame->src, frame->dst, 2);
	swap(&frame->sport, &frame->dport, 1);
	return XDP_TX;
}

// For the other ends: a veth device takes what a program sends back (XDP_TX) only while it has a program.
SEC("pass") int xdp_pass(struct xdp_md *ctx)
{
	(void)ctx;
	return XDP_PASS;
}

char _license[] SEC("license") = "GPL";
