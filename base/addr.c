// SPDX-License-Identifier: BSD-2-Clause
// Text forms of addresses and endpoints.
#include "base/addr.h"

#include <arpa/inet.h>
#include <stdio.h>

_Static_assert(ALB_ADDR_TEXT_MAX == INET6_ADDRSTRLEN, "room for what inet_ntop writes");

struct alb_addr alb_addr_from_ipv4(const uint8_t ipv4[4])
{
    struct alb_addr addr = {.bytes = {[10] = 0xff, [11] = 0xff}};
    memcpy(addr.bytes + 12, ipv4, 4);
    return addr;
}

char *alb_addr_format(const struct alb_addr *addr, char text[ALB_ADDR_TEXT_MAX])
{
    bool is_ipv4 = alb_addr_is_ipv4(addr);
    const char *written =
        inet_ntop(is_ipv4 ? AF_INET : AF_INET6, addr->bytes + (is_ipv4 ? 12 : 0), text, ALB_ADDR_TEXT_MAX);
    alb_assert(written == text);
    return text;
}

char *alb_endpoint_format(const struct alb_endpoint *endpoint, char text[ALB_ENDPOINT_TEXT_MAX])
{
    char addr[ALB_ADDR_TEXT_MAX];
    const char *form = alb_addr_is_ipv4(&endpoint->addr) ? "%s:%u" : "[%s]:%u";
    snprintf(text, ALB_ENDPOINT_TEXT_MAX, form, alb_addr_format(&endpoint->addr, addr), endpoint->port);
    return text;
}

bool alb_addr_parse(const char *text, struct alb_addr *addr)
{
    uint8_t ipv4[4];
    if (inet_pton(AF_INET, text, ipv4) == 1) {
        *addr = alb_addr_from_ipv4(ipv4);
        return true;
    }
    struct alb_addr ipv6;
    if (inet_pton(AF_INET6, text, ipv6.bytes) != 1)
        return false;
    *addr = ipv6;
    return true;
}
