// SPDX-License-Identifier: BSD-2-Clause
#include "device/tests/end.h"

#include <stdlib.h>
#include <string.h>

static void take(void *context, const struct alb_datagram *datagrams, uint32_t count, alb_time now)
{
    struct end *end = context;
    end->came_at = now;
    for (uint32_t i = 0; i < count; i++) {
        assert_true(end->count < TAKEN_MAX);
        end->bytes[end->count] = malloc(datagrams[i].length + 1);
        memcpy(end->bytes[end->count], datagrams[i].bytes, datagrams[i].length);
        end->taken[end->count++] = datagrams[i];
    }
}

static void drop(void *context, enum alb_drop reason)
{
    ((struct end *)context)->dropped[reason]++;
}

static void *zeroed(size_t bytes)
{
    void *memory = aligned_alloc(64, (bytes + 63) & ~(size_t)63);
    return memset(memory, 0, bytes);
}

struct end *end_open_with(const char *address, int slot, bool icrc_ones, const struct alb_faults_spec *faults)
{
    static const struct alb_faults_spec none;
    static const struct alb_siphash_key key = {{1, 2}};
    struct end *end = zeroed(sizeof(*end));
    struct alb_addr addr;
    assert_true(alb_addr_parse(address, &addr));
    struct alb_socket before[8]; // taken while ours is claimed, so that we get the slot wanted
    uint8_t unused;
    for (int i = 0; i < slot; i++)
        assert_int_equal(alb_slot_claim(&addr, 1, &before[i], &unused), 0);
    assert_int_equal(alb_port_open(&end->port, &addr, 1), 0);
    for (int i = 0; i < slot; i++)
        alb_socket_close(&before[i]);
    end->sender = zeroed(sizeof(*end->sender));
    end->rx = zeroed(sizeof(*end->rx));
    end->idents = zeroed(alb_idents_bytes());
    end->buffers = zeroed(ALB_RX_MESSAGES * ALB_RX_BUFFER_BYTES);
    assert_int_equal(alb_sender_init(end->sender, &end->port, &end->stats, icrc_ones, faults ? faults : &none, 7), 0);
    const struct alb_rx_taker taker = {.context = end, .datagrams = take, .drop = drop};
    struct alb_idents *idents = icrc_ones ? NULL : alb_idents_init(end->idents, &key);
    alb_rx_init(end->rx, &taker, &end->stats, idents, end->port.slot, end->buffers);
    return end;
}

struct end *end_open_at(const char *address, int slot, const struct alb_faults_spec *faults)
{
    return end_open_with(address, slot, false, faults);
}

struct end *end_open(const char *address)
{
    return end_open_at(address, 0, NULL);
}

void end_clear(struct end *end)
{
    while (end->count > 0)
        free(end->bytes[--end->count]);
}

void end_close(struct end *end)
{
    end_clear(end);
    alb_sender_fini(end->sender);
    alb_port_close(&end->port);
    free(end->sender);
    free(end->rx);
    free(end->idents);
    free(end->buffers);
    free(end);
}

uint32_t end_receive_all(struct end *end)
{
    struct alb_socket *ready[8];
    uint32_t messages = 0, count;
    alb_time now = 0;
    for (int i = 0; i < 50; i++) {
        while ((count = alb_port_ready(&end->port, NULL, ready, ALB_COUNT(ready))) > 0)
            for (uint32_t k = 0; k < count; k++)
                messages += alb_rx_receive(end->rx, ready[k], &now);
    }
    return messages;
}

void end_put_headers(uint8_t *out, alb_qpn qpn, uint32_t psn)
{
    const struct alb_roce roce = {.opcode = ALB_RC_SEND_ONLY, .pkey = ALB_PKEY_DEFAULT, .dest_qpn = qpn, .psn = psn};
    assert_int_equal(alb_roce_encode(&roce, out), ALB_BTH_BYTES);
}

void end_add_burst(struct end *from, const struct alb_endpoint *peer, alb_qpn qpn, uint32_t segments,
                   uint32_t payload_bytes, uint32_t last_bytes)
{
    static uint8_t payload[8192];
    struct alb_tx *tx = &from->sender->tx;
    struct alb_burst *burst = &tx->bursts[tx->burst_count++];
    *burst = (struct alb_burst){
        .peer = *peer,
        .local = {.addr = from->port.addresses[0]},
        .traffic_class = 0x02,
        .segment_first = tx->segment_count,
        .segment_count = segments,
        .segment_bytes = ALB_BTH_BYTES + (segments > 1 ? payload_bytes : last_bytes) + ALB_ICRC_BYTES,
    };
    for (size_t i = 0; i < sizeof(payload); i++)
        payload[i] = (uint8_t)(i * 13);
    for (uint32_t i = 0; i < segments; i++) {
        uint32_t bytes = i + 1 < segments ? payload_bytes : last_bytes;
        uint8_t *header = tx->bytes + tx->bytes_count;
        tx->bytes_count += 32;
        end_put_headers(header, qpn, tx->segment_count);
        tx->segments[tx->segment_count++] = (struct alb_segment){
            .iov_first = tx->iov_count, .iov_count = 3, .length = ALB_BTH_BYTES + bytes + ALB_ICRC_BYTES};
        tx->iov[tx->iov_count++] = (struct iovec){header, ALB_BTH_BYTES};
        tx->iov[tx->iov_count++] = (struct iovec){payload, bytes};
        tx->iov[tx->iov_count++] = (struct iovec){header + 16, ALB_ICRC_BYTES};
    }
}

void end_send(struct end *from, alb_time now)
{
    struct alb_tx *tx = &from->sender->tx;
    alb_sender_send(from->sender, now);
    tx->burst_count = tx->segment_count = tx->iov_count = tx->bytes_count = 0;
}

struct alb_endpoint end_endpoint(const struct end *end)
{
    return end->port.own[0].local;
}

bool end_has_ipv6(void)
{
    struct alb_endpoint local = {.port = 0}; // any: the same question may be asked beside us
    struct alb_socket sock;
    assert_true(alb_addr_parse("::1", &local.addr));
    if (alb_socket_open(&sock, &local) != 0)
        return false;
    alb_socket_close(&sock);
    return true;
}
