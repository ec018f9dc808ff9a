// SPDX-License-Identifier: BSD-2-Clause
// ibv_init_ah_from_wc(3): the address of a datagram's sender, from the 40 bytes in front of its payload. They hold an
// IPv6 header (which a GRH is), or an IPv4 header in their last 20 bytes (RoCEv2 annex A17.4.5.2).
#include "plugins/verbs/door.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/ip.h>

static int find_gid(struct ibv_context *context, const struct alb_addr *addr)
{
    struct alb_device *device = alb_door_context(context)->device;
    const struct alb_addr *gid;
    for (uint32_t i = 0; (gid = alb_device_gid(device, i)); i++)
        if (alb_addr_equals(gid, addr))
            return (int)i;
    return -1;
}

static uint16_t header_checksum(const struct iphdr *header)
{
    uint16_t words[sizeof(*header) / 2];
    uint32_t sum = 0;
    memcpy(words, header, sizeof(words));
    for (size_t i = 0; i < ALB_COUNT(words); i++)
        sum += words[i];
    while (sum >> 16)
        sum = (sum & 0xffff) + (sum >> 16);
    return (uint16_t)~sum;
}

// What lies at byte 20 of an IPv6 header are addresses and could look like anything: where the first four bits say 6,
// an IPv4 header is believed only if its checksum is right.
static bool is_ipv4(const struct ibv_grh *grh, struct iphdr *header)
{
    memcpy(header, (const char *)grh + sizeof(*grh) - sizeof(*header), sizeof(*header));
    if (header->version != 4)
        return false;
    if (ntohl(grh->version_tclass_flow) >> 28 != 6)
        return true;
    return header->ihl == 5 && header_checksum(header) == 0;
}

static int address_from_ipv4(struct ibv_context *context, const struct iphdr *header, struct ibv_global_route *route)
{
    struct alb_addr local = alb_addr_from_ipv4((const uint8_t *)&header->daddr);
    struct alb_addr peer = alb_addr_from_ipv4((const uint8_t *)&header->saddr);
    int index = find_gid(context, &local);
    if (index < 0)
        return ENOENT;
    memcpy(route->dgid.raw, peer.bytes, sizeof(route->dgid.raw));
    route->sgid_index = (uint8_t)index;
    route->hop_limit = header->ttl;
    route->traffic_class = header->tos;
    return 0;
}

static int address_from_ipv6(struct ibv_context *context, const struct ibv_grh *grh, struct ibv_global_route *route)
{
    uint32_t first_word = ntohl(grh->version_tclass_flow);
    struct alb_addr local;
    if (first_word >> 28 != 6 || grh->next_hdr != IPPROTO_UDP)
        return EPROTONOSUPPORT;
    memcpy(local.bytes, grh->dgid.raw, sizeof(local.bytes));
    int index = find_gid(context, &local);
    if (index < 0)
        return ENOENT;
    route->dgid = grh->sgid;
    route->sgid_index = (uint8_t)index;
    route->hop_limit = grh->hop_limit;
    route->traffic_class = (uint8_t)(first_word >> 20);
    route->flow_label = first_word & 0xfffff;
    return 0;
}

int ibv_init_ah_from_wc(struct ibv_context *context, uint8_t port_num, struct ibv_wc *wc, struct ibv_grh *grh,
                        struct ibv_ah_attr *attr)
{
    int error = 0;
    struct iphdr ipv4;
    if (!context || !wc || !attr || (wc->wc_flags & IBV_WC_GRH && !grh)) {
        errno = EINVAL;
        return -1;
    }
    *attr =
        (struct ibv_ah_attr){.dlid = wc->slid, .sl = wc->sl, .src_path_bits = wc->dlid_path_bits, .port_num = port_num};
    if (wc->wc_flags & IBV_WC_GRH) {
        attr->is_global = 1;
        error = is_ipv4(grh, &ipv4) ? address_from_ipv4(context, &ipv4, &attr->grh)
                                    : address_from_ipv6(context, grh, &attr->grh);
    }
    if (error)
        errno = error;
    return error ? -1 : 0;
}

struct ibv_ah *ibv_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc, struct ibv_grh *grh, uint8_t port_num)
{
    struct ibv_ah_attr attr;
    if (!pd)
        return alb_door_fail(EINVAL);
    if (ibv_init_ah_from_wc(pd->context, port_num, wc, grh, &attr) != 0)
        return NULL;
    return ibv_create_ah(pd, &attr);
}
