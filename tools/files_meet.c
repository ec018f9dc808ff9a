// SPDX-License-Identifier: BSD-2-Clause
// Making connections between `albedo cp` and `albedo serve`.
#include "tools/files_meet.h"

#include "base/text.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RESOLVE_MS      2000
#define ACK_TIMEOUT_MIN 14 // a server's: 4.096 us * 2^14, each time

static bool say_why(char why[FILES_WHY_MAX], const char *what, int error)
{
    snprintf(why, FILES_WHY_MAX, "%s: %s", what, strerror(error));
    return false;
}

static bool make_queues(struct files_link *link, char why[FILES_WHY_MAX])
{
    struct rdma_cm_id *id = link->id;
    struct ibv_qp_init_attr init = {
        .qp_type = IBV_QPT_RC,
        // A transaction of two writes takes three places.
        .cap = {.max_send_wr = 4 * FILES_IN_FLIGHT + 8,
                .max_recv_wr = FILES_RECEIVES,
                .max_send_sge = 1,
                .max_recv_sge = 1},
    };
    const struct albdv_qp_attr attr = {.in_flight_max = FILES_IN_FLIGHT};
    link->pd = ibv_alloc_pd(id->verbs);
    link->completions = link->pd ? ibv_create_comp_channel(id->verbs) : NULL;
    link->cq = link->completions ? ibv_create_cq(id->verbs, 8 * FILES_IN_FLIGHT, NULL, link->completions, 0) : NULL;
    link->buffers = calloc(1 + FILES_RECEIVES, FILES_MESSAGE_BYTES);
    if (link->cq && link->buffers)
        link->buffers_mr =
            ibv_reg_mr(link->pd, link->buffers, (1 + FILES_RECEIVES) * FILES_MESSAGE_BYTES, IBV_ACCESS_LOCAL_WRITE);
    if (!link->buffers_mr)
        return say_why(why, "cannot use the device", errno);
    init.send_cq = init.recv_cq = link->cq;
    if (rdma_create_qp(id, link->pd, &init) != 0)
        return say_why(why, "cannot create a queue pair", errno);
    link->qp = albdv_extend_qp(id->qp, &attr);
    if (!link->qp)
        return say_why(why, "the queue pair cannot have transactions", errno);
    for (uint32_t i = 0; i < FILES_RECEIVES; i++)
        if (!files_link_post_receive(link, i))
            return say_why(why, "cannot post a receive", errno);
    return true;
}

// "ADDRESS port PORT"
static void name_address(const struct sockaddr_storage *address, char *text, size_t size)
{
    char host[INET6_ADDRSTRLEN] = "", port[NI_MAXSERV] = "";
    getnameinfo((const struct sockaddr *)address, sizeof(*address), host, sizeof(host), port, sizeof(port),
                NI_NUMERICHOST | NI_NUMERICSERV);
    snprintf(text, size, "%s port %s", host, port);
}

// The device keeps the addresses that it has, and a host without a way there may have none for long. Who was connected
// before tries again all the same: a network that is down may come up.
static bool is_of_no_address(const struct rdma_cm_event *event)
{
    int error = -event->status;
    return event->event == RDMA_CM_EVENT_ADDR_ERROR &&
           (error == EADDRNOTAVAIL || error == ENODEV || error == EAFNOSUPPORT || error == ENETUNREACH ||
            error == EHOSTUNREACH);
}

static const char *event_meaning(enum rdma_cm_event_type event)
{
    switch (event) {
    case RDMA_CM_EVENT_REJECTED:
        return "nothing listens there: is `albedo serve` running? (Of several users of that host, or containers with a "
               "/dev/shm each, only the one whose process has UDP port 4791 is reached; containers of one user can "
               "share "
               "/dev/shm, or one ALBEDO_DIRECTORY.)";
    case RDMA_CM_EVENT_UNREACHABLE:
        return "no answer: is the host up, and has `albedo serve` that address, with --net?";
    case RDMA_CM_EVENT_ADDR_ERROR:
        return "the device has no address to reach it from; --net sets them, here and for `albedo serve`, and without "
               "it they are loopback's";
    default:
        return "cannot connect";
    }
}

// Waits for the connection's next event. Why says what is wrong if it is another one.
static enum files_result expect_event(struct files_link *link, const struct sockaddr_storage *address,
                                      enum rdma_cm_event_type wanted, char why[FILES_WHY_MAX])
{
    struct rdma_cm_event *event;
    if (rdma_get_cm_event(link->channel, &event) != 0) {
        say_why(why, "no answer", errno);
        return FILES_LOST;
    }
    enum files_result result = event->event == wanted ? FILES_OK : is_of_no_address(event) ? FILES_FAILED : FILES_LOST;
    const struct rdma_conn_param *param = &event->param.conn;
    const char *words = param->private_data;
    if (event->event == RDMA_CM_EVENT_REJECTED && words && param->private_data_len > 0 && words[0]) {
        snprintf(why, FILES_WHY_MAX, "%.*s", (int)param->private_data_len, words);
        alb_text_disarm(why);
    } else if (result != FILES_OK) {
        char peer[INET6_ADDRSTRLEN + NI_MAXSERV + 8];
        name_address(address, peer, sizeof(peer));
        snprintf(why, FILES_WHY_MAX, "%s: %s (%s)", peer, event_meaning(event->event),
                 event->event == RDMA_CM_EVENT_ADDR_ERROR ? strerror(-event->status) : rdma_event_str(event->event));
    }
    rdma_ack_cm_event(event);
    return result;
}

uint32_t files_link_find(const char *host, const char *port, struct sockaddr_storage addresses[FILES_ADDRESSES_MAX],
                         char why[FILES_WHY_MAX])
{
    uint32_t count = 0;
    struct addrinfo *found = NULL;
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    int error = getaddrinfo(host, port, &hints, &found);
    if (error) {
        snprintf(why, FILES_WHY_MAX, "%.255s: %s", host, gai_strerror(error));
        return 0;
    }
    for (const struct addrinfo *one = found; one && count < FILES_ADDRESSES_MAX; one = one->ai_next, count++) {
        addresses[count] = (struct sockaddr_storage){0};
        memcpy(&addresses[count], one->ai_addr, ALB_MIN((size_t)one->ai_addrlen, sizeof(*addresses)));
    }
    freeaddrinfo(found);
    return count;
}

static enum files_result resolve(struct files_link *link, const struct sockaddr_storage *address,
                                 char why[FILES_WHY_MAX])
{
    struct sockaddr_storage there = *address;
    if (rdma_resolve_addr(link->id, NULL, (struct sockaddr *)&there, RESOLVE_MS) != 0) {
        say_why(why, "cannot find a device for the address", errno);
        return FILES_LOST;
    }
    enum files_result result = expect_event(link, address, RDMA_CM_EVENT_ADDR_RESOLVED, why);
    if (result == FILES_OK && rdma_resolve_route(link->id, RESOLVE_MS) != 0) {
        say_why(why, "cannot find a route to the address", errno);
        return FILES_LOST;
    }
    return result == FILES_OK ? expect_event(link, address, RDMA_CM_EVENT_ROUTE_RESOLVED, why) : result;
}

static enum files_result connect_to(struct files_link *link, const struct sockaddr_storage *address,
                                    uint8_t ack_timeout, char why[FILES_WHY_MAX])
{
    struct rdma_conn_param parameters = {
        .responder_resources = 4, .initiator_depth = 4, .retry_count = 7, .rnr_retry_count = 7};
    enum files_result result = resolve(link, address, why);
    if (result != FILES_OK)
        return result;
    if (!make_queues(link, why))
        return FILES_LOST;
    if (rdma_set_option(link->id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &ack_timeout, 1) != 0 ||
        rdma_connect(link->id, &parameters) != 0) {
        say_why(why, "cannot connect", errno);
        return FILES_LOST;
    }
    result = expect_event(link, address, RDMA_CM_EVENT_ESTABLISHED, why);
    link->is_established = result == FILES_OK;
    return result;
}

enum files_result files_link_connect(struct files_link *link, const struct sockaddr_storage *address,
                                     uint8_t ack_timeout, char why[FILES_WHY_MAX])
{
    enum files_result result = FILES_OK;
    *link = (struct files_link){.peer = "the server", .channel = rdma_create_event_channel()};
    if (!link->channel || rdma_create_id(link->channel, &link->id, NULL, RDMA_PS_TCP) != 0) {
        say_why(why, "cannot use the device", errno);
        result = FILES_FAILED;
    } else {
        result = connect_to(link, address, ack_timeout, why);
    }
    if (result != FILES_OK)
        files_link_close(link);
    return result;
}

// A server is less patient than its client, so that what a dead one held is free when it comes again. But a client that
// has become more patient has reason to.
static bool set_ack_timeout(struct rdma_cm_id *id)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS};
    int mask;
    if (rdma_init_qp_attr(id, &attr, &mask) != 0)
        return false;
    uint8_t asked = ALB_MIN(attr.timeout, (uint8_t)FILES_ACK_TIMEOUT_MAX);
    uint8_t ack_timeout = asked < FILES_ACK_TIMEOUT ? ACK_TIMEOUT_MIN : asked - (FILES_ACK_TIMEOUT - ACK_TIMEOUT_MIN);
    return rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &ack_timeout, 1) == 0;
}

static void reject(struct rdma_cm_id *id, const char why[FILES_REFUSAL_MAX])
{
    rdma_reject(id, why, (uint8_t)ALB_MIN(strlen(why), (size_t)FILES_REFUSAL_MAX));
}

bool files_link_accept(struct files_link *link, struct rdma_cm_id *id, char why[FILES_WHY_MAX])
{
    struct rdma_conn_param parameters = {.responder_resources = 4, .initiator_depth = 4, .rnr_retry_count = 7};
    *link = (struct files_link){.peer = "the client", .id = id, .channel = rdma_create_event_channel()};
    bool is_good = link->channel && rdma_migrate_id(id, link->channel) == 0 && set_ack_timeout(id);
    if (!is_good)
        say_why(why, "cannot use rdma_cm", errno);
    is_good = is_good && make_queues(link, why);
    if (is_good && rdma_accept(id, &parameters) != 0)
        is_good = say_why(why, "cannot accept", errno);
    if (!is_good) {
        char words[FILES_REFUSAL_MAX]; // without them it would seem to the client that nothing listens here
        snprintf(words, sizeof(words), "the server cannot take the connection: %.100s", why);
        reject(id, words);
        files_link_close(link);
    }
    return is_good;
}

void files_link_refuse(struct rdma_cm_id *id, const char why[FILES_REFUSAL_MAX])
{
    reject(id, why);
    rdma_destroy_id(id);
}

void files_link_close(struct files_link *link)
{
    if (link->id && link->id->qp) {
        rdma_disconnect(link->id);
        rdma_destroy_qp(link->id);
    }
    if (link->buffers_mr)
        ibv_dereg_mr(link->buffers_mr);
    if (link->cq)
        ibv_destroy_cq(link->cq);
    if (link->completions)
        ibv_destroy_comp_channel(link->completions);
    if (link->pd)
        ibv_dealloc_pd(link->pd);
    if (link->id)
        rdma_destroy_id(link->id);
    if (link->channel)
        rdma_destroy_event_channel(link->channel);
    free(link->buffers);
    memset(link, 0, sizeof(*link));
    link->is_lost = true;
}
