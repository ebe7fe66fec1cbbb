// SPDX-License-Identifier: MIT OR Apache-2.0
//
// The part of the kernel's interface to BPF that paths.bpf.c uses (linux/bpf.h), so that the object depends on the
// compiler only, and on no headers of the machine. The kernel never changes these numbers.

#pragma once

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef long long __s64;
typedef unsigned long long __u64;

enum { XDP_ABORTED, XDP_DROP, XDP_PASS, XDP_TX, XDP_REDIRECT };
enum { BPF_MAP_TYPE_HASH = 1, BPF_MAP_TYPE_ARRAY = 2, BPF_MAP_TYPE_PERCPU_ARRAY = 6 };
enum { BPF_F_NO_PREALLOC = 1 << 0, BPF_F_RDONLY_PROG = 1 << 7, BPF_F_MMAPABLE = 1 << 10 };

struct xdp_md {
	__u32 data, data_end, data_meta, ingress_ifindex, rx_queue_index, egress_ifindex;
};

static void *(*bpf_map_lookup_elem)(void *map, const void *key) = (void *)1;
static __u32 (*bpf_get_prandom_u32)(void) = (void *)7;
static long (*bpf_redirect)(__u32 ifindex, __u64 flags) = (void *)23;
static __s64 (*bpf_csum_diff)(const void *from, __u32 from_len, const void *to, __u32 to_len, __u32 seed) = (void *)28;
static long (*bpf_xdp_adjust_head)(struct xdp_md *ctx, int delta) = (void *)44;
static __u64 (*bpf_ktime_get_coarse_ns)(void) = (void *)160;
static __u64 (*bpf_xdp_get_buff_len)(struct xdp_md *ctx) = (void *)188;
static long (*bpf_xdp_load_bytes)(struct xdp_md *ctx, __u32 offset, void *to, __u32 len) = (void *)189;

#define SEC(name) __attribute__((section(name), used))
#define __always_inline inline __attribute__((always_inline))
// How libbpf and aya read the definition of a map from its type.
#define __uint(name, value) int(*name)[value]
#define __type(name, value) typeof(value) *name
