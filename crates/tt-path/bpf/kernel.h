// SPDX-License-Identifier: MIT OR Apache-2.0
//
// The part of the kernel's interface to BPF that the programs use (linux/bpf.h), so that the objects depend on the
// compiler only, and on no headers of the machine. The kernel never changes these numbers.

#pragma once

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef long long __s64;
typedef unsigned long long __u64;

enum { XDP_ABORTED, XDP_DROP, XDP_PASS, XDP_TX, XDP_REDIRECT };
enum { SK_DROP, SK_PASS };
enum { BPF_MAP_TYPE_HASH = 1, BPF_MAP_TYPE_ARRAY = 2, BPF_MAP_TYPE_PERCPU_ARRAY = 6, BPF_MAP_TYPE_SOCKMAP = 15 };
enum { BPF_MAP_TYPE_RINGBUF = 27 };
enum { BPF_F_NO_PREALLOC = 1 << 0, BPF_F_RDONLY_PROG = 1 << 7, BPF_F_MMAPABLE = 1 << 10 };

struct xdp_md {
	__u32 data, data_end, data_meta, ingress_ifindex, rx_queue_index, egress_ifindex;
};

struct bpf_sock;

struct bpf_sk_lookup {
	__u64 cookie;
	__u32 family, protocol;
	__u32 remote_ip4, remote_ip6[4];
	__u16 remote_port, : 16;
	__u32 local_ip4, local_ip6[4];
	__u32 local_port; // in the byte order of the CPU
	__u32 ingress_ifindex;
};

enum { BPF_SK_LOOKUP_F_NO_REUSEPORT = 1 << 1 };

static void *(*bpf_map_lookup_elem)(void *map, const void *key) = (void *)1;
static __u64 (*bpf_ktime_get_ns)(void) = (void *)5;
static __u32 (*bpf_get_prandom_u32)(void) = (void *)7;
static __u32 (*bpf_get_smp_processor_id)(void) = (void *)8;
static long (*bpf_redirect)(__u32 ifindex, __u64 flags) = (void *)23;
static __s64 (*bpf_csum_diff)(const void *from, __u32 from_len, const void *to, __u32 to_len, __u32 seed) = (void *)28;
static long (*bpf_xdp_adjust_head)(struct xdp_md *ctx, int delta) = (void *)44;
static long (*bpf_sk_release)(void *socket) = (void *)86;
static long (*bpf_sk_assign)(void *ctx, void *socket, __u64 flags) = (void *)124;
static long (*bpf_ringbuf_output)(void *ring, void *data, __u64 len, __u64 flags) = (void *)130;
static __u64 (*bpf_ktime_get_coarse_ns)(void) = (void *)160;
static __u64 (*bpf_xdp_get_buff_len)(struct xdp_md *ctx) = (void *)188;
static long (*bpf_xdp_load_bytes)(struct xdp_md *ctx, __u32 offset, void *to, __u32 len) = (void *)189;

#define SEC(name) __attribute__((section(name), used))
#define __always_inline inline __attribute__((always_inline))
// How libbpf and aya read the definition of a map from its type.
#define __uint(name, value) int(*name)[value]
#define __type(name, value) typeof(value) *name

#define MAP(name, type_, key_, value_, entries_, flags_)                                                               \
	struct {                                                                                                       \
		__uint(type, type_);                                                                                   \
		__type(key, key_);                                                                                     \
		__type(value, value_);                                                                                 \
		__uint(max_entries, entries_);                                                                         \
		__uint(map_flags, flags_);                                                                             \
	} name SEC(".maps")
