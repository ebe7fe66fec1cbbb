// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Copies of relayed packets, for `truetick paths dump`: one in `dump_every` of each CPU, as received and as sent. The
// process that wants them extends `dump_until`, and reads the ring. The struct is that of ../src/dump.rs.

#pragma once

#define DUMP_FRAME_MAX 2048
#define DUMP_HEAD_LEN 32
#define DUMP_RING_LEN (1 << 20)

enum form { FORM_RECEIVED = 0, FORM_SENT = 1 };

// What a CPU does for dumps.
struct dump {
	__u64 left; // relayed packets until one is copied
	__u64 lost; // packets without room in the ring
	__u64 is_wanted; // the packet under way is copied
	// From here on it is given away.
	__u64 at; // CLOCK_MONOTONIC, ns
	__u64 number; // of the packet, on this CPU
	__u32 cpu, ifindex; // where it arrived
	__u32 len; // of the frame
	__u32 form;
	__u8 frame[DUMP_FRAME_MAX];
};

MAP(dumps, BPF_MAP_TYPE_PERCPU_ARRAY, __u32, struct dump, 1, 0);
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, DUMP_RING_LEN);
} dump_ring SEC(".maps");

// Copies the frame into the ring, if this packet is one of those that are wanted. Not static: the verifier looks at it once
// only.
__attribute__((noinline)) int copy_for_dump(struct xdp_md *ctx, __u32 form)
{
	__u32 zero = 0;
	struct dump *dump = bpf_map_lookup_elem(&dumps, &zero);
	struct meta *state = bpf_map_lookup_elem(&meta, &zero);
	if (!dump || !state)
		return 0;
	if (form == FORM_RECEIVED) {
		dump->is_wanted = 0;
		if (state->dump_ifindex && state->dump_ifindex != ctx->ingress_ifindex)
			return 0;
		// What is left of an earlier dump may be more.
		if (dump->left > 1 && dump->left <= state->dump_every) {
			dump->left--;
			return 0;
		}
		dump->left = state->dump_every;
		dump->is_wanted = 1;
		dump->number++;
		dump->cpu = bpf_get_smp_processor_id();
		dump->ifindex = ctx->ingress_ifindex;
	} else if (!dump->is_wanted) {
		return 0;
	}
	__u64 len = bpf_xdp_get_buff_len(ctx), last = len - 1;
	if (last >= DUMP_FRAME_MAX)
		last = DUMP_FRAME_MAX - 1;
	// From 1 to DUMP_FRAME_MAX by its form, for the verifier of Linux 6.1; the compiler would leave the mask out.
	asm("" : "+r"(last));
	const __u64 kept = (last & (DUMP_FRAME_MAX - 1)) + 1;
	dump->at = bpf_ktime_get_ns();
	dump->len = len;
	dump->form = form;
	if (bpf_xdp_load_bytes(ctx, 0, dump->frame, kept) ||
	    bpf_ringbuf_output(&dump_ring, &dump->at, DUMP_HEAD_LEN + kept, 0)) {
		// The second form without the first one is no packet.
		dump->is_wanted = 0;
		dump->lost++;
	}
	return 0;
}
