// SPDX-License-Identifier: BSD-2-Clause
// The addresses of this host (of this network namespace): which are local, what their interfaces carry, and how a
// device's GID table is made from names.
#pragma once

#include "base/addr.h"

struct alb_address_info {
    struct alb_addr addr;
    uint32_t ifindex;
    uint32_t mtu_bytes; // of the interface
};

// What is known of one address. All of 127/8 is this host's, on the interface of 127.0.0.1. EADDRNOTAVAIL: the address
// is not; else it cannot be told, for want of descriptors or memory (EMFILE, ENOMEM, ...) or in a sandbox.
int alb_address_find(const struct alb_addr *addr, struct alb_address_info *info);

#define ALB_ADDRESS_REASON_MAX 160 // room for what is said of that
// Words for the user about why it cannot be told.
void alb_address_explain(int error, char *text, size_t text_size);

// True if datagrams to this address stay on this host. The list of local addresses is read again at most once a second.
bool alb_address_is_local(const struct alb_addr *addr);

// Whether an interface that has one of them is up and has a carrier. Errors: those of alb_address_find but
// EADDRNOTAVAIL, and then *is_up stays.
int alb_address_any_is_up(const struct alb_addr *addresses, uint32_t count, bool *is_up);

// True for 127/8 and ::1, which no other host can reach.
bool alb_address_is_loopback(const struct alb_addr *addr);

// The usable addresses of an interface (IPv4 first; link-local IPv6 needs a scope that GIDs cannot carry, and is left
// out), up to capacity. *count: how many it has of them, stored or not; 0: no such interface, or none on it. Errors:
// those of alb_address_find, but EADDRNOTAVAIL.
int alb_address_of_interface(const char *name, struct alb_addr *addresses, uint32_t capacity, uint32_t *count);

// The largest RoCE path MTU (256 ... 4096) whose packets, with all headers, fit an interface MTU; 0 if not even 256
// does.
uint32_t alb_address_roce_mtu(const struct alb_addr *addr, uint32_t interface_mtu_bytes);
