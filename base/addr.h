// SPDX-License-Identifier: BSD-2-Clause
// Network addresses. An address is a GID is an IPv6 address; IPv4 is carried mapped (::ffff:a.b.c.d).
#pragma once

#include "base/types.h"

#include <string.h>

struct alb_addr {
    uint8_t bytes[16];
};

// A UDP endpoint. The port is in host byte order.
struct alb_endpoint {
    struct alb_addr addr;
    uint16_t port;
};

static inline bool alb_addr_equals(const struct alb_addr *a, const struct alb_addr *b)
{
    return memcmp(a->bytes, b->bytes, sizeof(a->bytes)) == 0;
}

static inline bool alb_addr_is_ipv4(const struct alb_addr *a)
{
    static const uint8_t prefix[12] = {[10] = 0xff, [11] = 0xff};
    return memcmp(a->bytes, prefix, sizeof(prefix)) == 0;
}

// A multicast group: ff00::/8, or 224.0.0.0/4.
static inline bool alb_addr_is_multicast(const struct alb_addr *a)
{
    return a->bytes[0] == 0xff || (alb_addr_is_ipv4(a) && (a->bytes[12] & 0xf0) == 0xe0);
}

static inline bool alb_endpoint_equals(const struct alb_endpoint *a, const struct alb_endpoint *b)
{
    return a->port == b->port && alb_addr_equals(&a->addr, &b->addr);
}

// The mapped address of an IPv4 address given as its four bytes in network order.
struct alb_addr alb_addr_from_ipv4(const uint8_t ipv4[4]);

// Longest text of an address with its terminating zero, and of an endpoint ("[address]:port").
#define ALB_ADDR_TEXT_MAX     46
#define ALB_ENDPOINT_TEXT_MAX (ALB_ADDR_TEXT_MAX + 8)

// Writes the usual text form ("10.0.0.1", "fd99::1") into text and returns text.
char *alb_addr_format(const struct alb_addr *addr, char text[ALB_ADDR_TEXT_MAX]);

// Writes "10.0.0.1:4791" or "[fd99::1]:4791" into text and returns text.
char *alb_endpoint_format(const struct alb_endpoint *endpoint, char text[ALB_ENDPOINT_TEXT_MAX]);

// Parses an IPv4 or IPv6 address as inet_pton does. False if it is neither; *addr is then unchanged.
bool alb_addr_parse(const char *text, struct alb_addr *addr);
