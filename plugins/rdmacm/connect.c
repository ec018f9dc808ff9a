// SPDX-License-Identifier: BSD-2-Clause
// Connecting: between the program's calls and events, and the connection manager's.
#include "plugins/rdmacm/door.h"

#include "device/directory.h"
#include "device/slot.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#define RD_ATOMIC_MAX 128
#define RETRIES_MAX   7 // three bits in a message

static uint32_t random_psn(void)
{
    uint32_t random = 0;
    if (getrandom(&random, sizeof(random), 0) != sizeof(random))
        random = (uint32_t)alb_device_now();
    return random & ALB_PSN_MASK;
}

// As the kernel does it, what is more than a message can say is the most that it can.
static uint8_t retries(uint8_t wanted)
{
    return ALB_MIN(wanted, (uint8_t)RETRIES_MAX);
}

static bool is_datagram(const struct rdmacm_id *id)
{
    return id->id.qp_type == IBV_QPT_UD;
}

static uint8_t local_mtu_code(void)
{
    return (uint8_t)(__builtin_ctz(alb_device_mtu_bytes(rdmacm_device())) - 7);
}

static uint8_t ack_code(const struct rdmacm_id *id)
{
    return id->has_ack_timeout ? id->ack_timeout : RDMACM_ACK_CODE;
}

// The program's private data, behind the header by which IP services know their peers.
struct payload {
    uint8_t bytes[ALB_CM_PRIVATE_MAX];
    struct alb_cm_private data;
};

static int with_header(const struct rdmacm_id *id, enum alb_cm_type type, const struct rdma_conn_param *param,
                       struct payload *payload)
{
    struct alb_cm_ip_header header;
    uint16_t port;
    uint32_t length = param ? param->private_data_len : 0;
    if (length > alb_cm_private_bytes(type) - ALB_CM_IP_HEADER_BYTES)
        return EINVAL;
    rdmacm_get_sockaddr(&id->id.route.addr.src_addr, &header.source, &header.source_port);
    rdmacm_get_sockaddr(&id->id.route.addr.dst_addr, &header.destination, &port);
    alb_cm_ip_header_encode(&header, payload->bytes);
    if (length)
        memcpy(payload->bytes + ALB_CM_IP_HEADER_BYTES, param->private_data, length);
    payload->data = (struct alb_cm_private){payload->bytes, ALB_CM_IP_HEADER_BYTES + length};
    return 0;
}

// ---- what programs ask for ------------------------------------------------------------------------------------------

static struct alb_cm_req request(struct rdmacm_id *id, const struct rdma_conn_param *param)
{
    id->dest_rd_atomic = param ? ALB_MIN(param->responder_resources, (uint8_t)RD_ATOMIC_MAX) : 1;
    id->rd_atomic = param ? ALB_MIN(param->initiator_depth, (uint8_t)RD_ATOMIC_MAX) : 1;
    id->retry_count = param ? retries(param->retry_count) : RETRIES_MAX;
    id->rnr_retry_count = param ? retries(param->rnr_retry_count) : RETRIES_MAX;
    id->timeout_code = ack_code(id);
    id->mtu_code = local_mtu_code();
    id->rq_psn = random_psn();
    id->qpn = id->id.qp ? id->id.qp->qp_num : param ? param->qp_num : 0;
    bool is_xrc = id->id.qp_type == IBV_QPT_XRC_SEND;
    return (struct alb_cm_req){
        .service_id = alb_cm_service_id((enum alb_cm_port_space)id->id.ps, rdmacm_port(&id->id.route.addr.dst_storage)),
        .ca_guid = be64toh(ibv_get_device_guid(id->id.verbs->device)),
        .qpn = id->qpn,
        .responder_resources = id->dest_rd_atomic,
        .initiator_depth = id->rd_atomic,
        .remote_response_timeout = RDMACM_RESPONSE_CODE,
        .local_response_timeout = RDMACM_RESPONSE_CODE,
        .transport = id->id.qp_type == IBV_QPT_UC ? ALB_CM_TRANSPORT_UC
                     : is_xrc                     ? ALB_CM_TRANSPORT_EXTENDED
                                                  : ALB_CM_TRANSPORT_RC,
        .extended_transport = is_xrc ? ALB_CM_EXTENDED_XRC : 0,
        .starting_psn = id->rq_psn,
        .retry_count = id->retry_count,
        .rnr_retry_count = id->rnr_retry_count,
        .flow_control = param && param->flow_control,
        .pkey = ALB_PKEY_DEFAULT,
        .mtu = id->mtu_code,
        .max_cm_retries = RDMACM_CM_RETRIES,
        .has_srq = id->id.qp ? id->id.qp->srq != NULL : param && param->srq,
        .primary = {.local_lid = 0xffff,
                    .remote_lid = 0xffff,
                    .local_gid = id->av.local,
                    .remote_gid = id->av.peer,
                    .traffic_class = id->tos,
                    .hop_limit = RDMACM_HOP_LIMIT,
                    .ack_timeout = ack_code(id)},
    };
}

// True if some process receives what is sent to port 4791 of an address of this host.
static bool has_front(const struct alb_addr *addr)
{
    struct alb_socket probe;
    if (alb_slot_bind(addr, 1, ALB_ROCE_PORT, &probe) != 0)
        return true;
    alb_socket_close(&probe);
    return false;
}

static uint8_t gsi_index(void)
{
    return alb_engine_configuration(rdmacm_engine())->gsi_index;
}

// True if who receives what is sent to port 4791 is known, and is a device of another kind: it refuses nothing that is
// sent to ours.
static bool has_other_front(void)
{
    struct alb_directory directory;
    struct alb_directory_board board;
    bool is_other = false;
    if (alb_directory_open(&directory, geteuid()) != 0)
        return false;
    while (!is_other && alb_directory_next(&directory, &board)) {
        is_other = board.header.slot == 0 && board.header.net_namespace == alb_board_net_namespace() &&
                   strcmp(board.header.device, ibv_get_device_name(rdmacm_context()->device)) != 0;
        alb_directory_unmap(&board);
    }
    alb_directory_close(&directory);
    return is_other;
}

// The slot of a listener on this host, also if it listens in a moment (RDMACM_REFUSALS says why).
static bool find_soon(uint64_t service_id, const struct alb_addr *addr, uint8_t *slot)
{
    static const struct timespec pause = {.tv_nsec = 1000 * 1000};
    for (int tries = 50; tries > 0; tries--) {
        if (alb_cm_claim_find(gsi_index(), service_id, addr, slot))
            return true;
        nanosleep(&pause, NULL);
    }
    return false;
}

// On this host the listener's slot is known, so that the request depends on nobody else: whoever holds port 4791 may be
// another user's process, which does not see our claims, or nobody. What we know nothing of, another user may have; if
// nobody holds the port that could answer, our own slot refuses it at once.
static struct alb_cm_target target_of(const struct rdmacm_id *id, uint64_t service_id)
{
    struct alb_cm_target target = {.av = id->av, .gsi_qpn = gsi_index(), .refusals = RDMACM_REFUSALS};
    uint8_t slot;
    if (!id->av.same_host)
        return target;
    if (find_soon(service_id, &id->av.peer, &slot))
        target.gsi_qpn |= (alb_qpn)slot << 16;
    else if (!has_front(&id->av.peer) || has_other_front())
        target.gsi_qpn |= (alb_qpn)alb_device_slot(rdmacm_device()) << 16;
    return target;
}

static int connect_now(struct rdmacm_id *id, const struct rdma_conn_param *param)
{
    struct payload payload;
    struct alb_cm_req req = request(id, param);
    struct alb_cm_target target = target_of(id, req.service_id);
    int error = with_header(id, is_datagram(id) ? ALB_CM_SIDR_REQ : ALB_CM_REQ, param, &payload);
    if (error)
        return error;
    rdmacm_lock();
    error = alb_cm_id_create(rdmacm_engine(), id, &id->cm);
    if (!error)
        alb_cm_id_set_ece(id->cm, &id->local_ece);
    if (!error && is_datagram(id))
        error = alb_cm_resolve(id->cm, &target, req.service_id, &payload.data, 4096ull << RDMACM_RESPONSE_CODE,
                               RDMACM_CM_RETRIES, alb_device_now());
    else if (!error)
        error = alb_cm_connect(id->cm, &target, &req, &payload.data, alb_device_now());
    if (error && id->cm) {
        alb_cm_id_destroy(id->cm, alb_device_now());
        id->cm = NULL;
    }
    rdmacm_unlock();
    return error;
}

int rdma_connect(struct rdma_cm_id *outer, struct rdma_conn_param *param)
{
    struct rdmacm_id *id = rdmacm_id(outer);
    if (rdmacm_is_forked(id))
        return rdmacm_fail(ENODEV);
    if (id->cm || !id->has_route)
        return rdmacm_fail(EINVAL);
    int error = rdmacm_channel_error(id);
    if (!error)
        error = rdmacm_event_reserve(id);
    if (!error)
        error = connect_now(id, param);
    return rdmacm_result(error ? error : rdmacm_complete(id));
}

int rdmacm_on_response(struct rdmacm_id *id)
{
    int error = rdmacm_qp_connect(id);
    rdmacm_lock();
    if (!id->cm)
        error = ECONNRESET;
    else if (error)
        alb_cm_reject(id->cm, ALB_CM_REJ_CONSUMER_DEFINED, NULL, alb_device_now());
    else
        error = alb_cm_establish(id->cm, NULL, alb_device_now());
    rdmacm_unlock();
    return error;
}

int rdma_establish(struct rdma_cm_id *outer)
{
    struct rdmacm_id *id = rdmacm_id(outer);
    if (rdmacm_is_forked(id))
        return rdmacm_fail(ENODEV);
    if (outer->qp) // those are established by taking the event
        return rdmacm_fail(EINVAL);
    rdmacm_lock();
    int error = id->cm ? alb_cm_establish(id->cm, NULL, alb_device_now()) : EINVAL;
    rdmacm_unlock();
    return rdmacm_result(error);
}

static int accept_connection(struct rdmacm_id *id, const struct rdma_conn_param *param,
                             const struct alb_cm_private *data)
{
    bool asks_all = !param || param->initiator_depth == RDMA_MAX_INIT_DEPTH;
    bool gives_all = !param || param->responder_resources == RDMA_MAX_RESP_RES;
    id->rd_atomic = ALB_MIN(asks_all ? id->initiator_depth : param->initiator_depth, (uint8_t)RD_ATOMIC_MAX);
    id->dest_rd_atomic =
        ALB_MIN(gives_all ? id->responder_resources : param->responder_resources, (uint8_t)RD_ATOMIC_MAX);
    int error = id->id.qp ? rdmacm_qp_connect(id) : 0;
    if (error)
        return error;
    bool is_xrc = id->id.qp_type == IBV_QPT_XRC_RECV;
    uint32_t qpn = id->id.qp ? id->id.qp->qp_num : param ? param->qp_num : 0;
    struct alb_cm_rep rep = {
        .qpn = is_xrc ? 0 : qpn,
        .eecn = is_xrc ? qpn : 0,
        .starting_psn = id->rq_psn,
        .responder_resources = id->dest_rd_atomic,
        .initiator_depth = id->rd_atomic,
        .target_ack_delay = 15,
        .flow_control = param && param->flow_control,
        .rnr_retry_count = param ? retries(param->rnr_retry_count) : RETRIES_MAX,
        .has_srq = is_xrc || (id->id.qp ? id->id.qp->srq != NULL : param && param->srq),
        .ca_guid = be64toh(ibv_get_device_guid(id->id.verbs->device)),
    };
    rdmacm_lock();
    alb_cm_id_set_ece(id->cm, &id->local_ece);
    error = alb_cm_accept(id->cm, &rep, data, alb_device_now());
    rdmacm_unlock();
    return error;
}

static int accept_datagrams(struct rdmacm_id *id, const struct rdma_conn_param *param,
                            const struct alb_cm_private *data)
{
    uint32_t qpn = id->id.qp ? id->id.qp->qp_num : param ? param->qp_num : 0;
    rdmacm_lock();
    alb_cm_id_set_ece(id->cm, &id->local_ece);
    int error =
        alb_cm_answer(id->cm, ALB_CM_SIDR_VALID, qpn, id->qkey ? id->qkey : RDMA_UDP_QKEY, data, alb_device_now());
    rdmacm_unlock();
    return error;
}

int rdma_accept(struct rdma_cm_id *outer, struct rdma_conn_param *param)
{
    struct rdmacm_id *id = rdmacm_id(outer);
    struct alb_cm_private data = {param ? param->private_data : NULL, param ? param->private_data_len : 0};
    if (rdmacm_is_forked(id))
        return rdmacm_fail(ENODEV);
    if (!id->cm || id->is_listening)
        return rdmacm_fail(EINVAL);
    int error = is_datagram(id) ? accept_datagrams(id, param, &data) : accept_connection(id, param, &data);
    if (error)
        return rdmacm_fail(error);
    if (!is_datagram(id))
        return rdmacm_result(rdmacm_complete(id));
    rdmacm_drop_kept(id);
    return 0;
}

int rdmacm_reject(struct rdmacm_id *id, enum alb_cm_rej_reason reason, const void *private_data, uint8_t length)
{
    struct alb_cm_private data = {private_data, length};
    if (rdmacm_is_forked(id))
        return ENODEV;
    rdmacm_lock();
    int error = !id->cm           ? EINVAL
                : is_datagram(id) ? alb_cm_answer(id->cm, ALB_CM_SIDR_REJECTED, 0, 0, &data, alb_device_now())
                                  : alb_cm_reject(id->cm, reason, &data, alb_device_now());
    rdmacm_unlock();
    if (!error)
        rdmacm_drop_kept(id);
    return error;
}

int rdma_reject(struct rdma_cm_id *outer, const void *private_data, uint8_t length)
{
    return rdmacm_result(rdmacm_reject(rdmacm_id(outer), ALB_CM_REJ_CONSUMER_DEFINED, private_data, length));
}

int rdma_notify(struct rdma_cm_id *outer, enum ibv_event_type event)
{
    struct rdmacm_id *id = rdmacm_id(outer);
    if (rdmacm_is_forked(id))
        return rdmacm_fail(ENODEV);
    if (event != IBV_EVENT_COMM_EST)
        return rdmacm_fail(EINVAL);
    rdmacm_lock();
    int error = id->cm ? alb_cm_notice_traffic(id->cm, alb_device_now()) : EINVAL;
    bool is_late = error && id->cm && alb_cm_id_state(id->cm) == ALB_CM_ESTABLISHED;
    rdmacm_unlock();
    return rdmacm_result(is_late ? 0 : error);
}

int rdma_disconnect(struct rdma_cm_id *outer)
{
    struct rdmacm_id *id = rdmacm_id(outer);
    if (rdmacm_is_forked(id))
        return rdmacm_fail(ENODEV);
    if (!id->cm || id->is_listening)
        return rdmacm_fail(EINVAL);
    int error = rdmacm_qp_error(id);
    if (error)
        return rdmacm_fail(error);
    rdmacm_lock();
    bool asks = alb_cm_disconnect(id->cm, NULL, alb_device_now()) == 0;
    rdmacm_unlock();
    // What is not connected any more (or not yet) has its queue pair in error, and that is all there is to do.
    return asks ? rdmacm_result(rdmacm_complete(id)) : 0;
}

// ---- what the manager says ------------------------------------------------------------------------------------------

// Where the private data of the program begins in a message, and how long it is.
static uint32_t private_data(struct rdmacm_event *event, const struct alb_cm_message *message)
{
    bool has_header = message->type == ALB_CM_REQ || message->type == ALB_CM_SIDR_REQ;
    uint32_t skip = has_header ? ALB_CM_IP_HEADER_BYTES : 0;
    uint32_t length = alb_cm_private_bytes(message->type) - skip;
    memcpy(event->private_data, message->private_data + skip, length);
    return length;
}

static void fill_conn(struct rdmacm_event *event, const struct alb_cm_message *message)
{
    struct rdma_conn_param *conn = &event->event.param.conn;
    *conn = (struct rdma_conn_param){.private_data = event->private_data,
                                     .private_data_len = (uint8_t)private_data(event, message)};
    if (message->type == ALB_CM_REQ) { // what the peer asks at a time is what we answer
        conn->responder_resources = message->req.initiator_depth;
        conn->initiator_depth = message->req.responder_resources;
        conn->flow_control = message->req.flow_control;
        conn->retry_count = message->req.retry_count;
        conn->rnr_retry_count = message->req.rnr_retry_count;
        conn->srq = message->req.has_srq;
        conn->qp_num = message->req.qpn;
    } else if (message->type == ALB_CM_REP) {
        conn->responder_resources = message->rep.initiator_depth;
        conn->initiator_depth = message->rep.responder_resources;
        conn->flow_control = message->rep.flow_control;
        conn->rnr_retry_count = message->rep.rnr_retry_count;
        conn->srq = message->rep.has_srq;
        conn->qp_num = alb_cm_rep_qpn(&message->rep);
    }
}

// The id of a request: bound to where the request came to, its peer known.
static struct rdmacm_id *id_of_request(struct rdmacm_id *listener, const struct alb_cm_event *event)
{
    struct alb_cm_ip_header header;
    const struct alb_av *av = alb_cm_id_av(event->id);
    struct rdmacm_id *id = NULL;
    if (alb_cm_ip_header_decode(event->message.private_data, &header))
        id = rdmacm_id_new(rdmacm_channel(listener->id.channel), listener->id.context, listener->id.ps,
                           listener->id.qp_type);
    if (!id)
        return NULL;
    id->tos = listener->tos;
    rdmacm_set_sockaddr(&id->id.route.addr.src_storage, &av->local, rdmacm_port(&listener->id.route.addr.src_storage));
    rdmacm_set_sockaddr(&id->id.route.addr.dst_storage, &av->peer, header.source_port);
    if (rdmacm_learn_av(id, &av->local, &av->peer)) {
        rdmacm_id_free(id);
        return NULL;
    }
    id->cm = event->id;
    id->is_bound = true;
    return id;
}

// All that rdma_init_qp_attr needs before the request is accepted, too.
static void take_request(struct rdmacm_id *id, const struct alb_cm_req *req)
{
    id->rq_psn = random_psn();
    id->responder_resources = req->initiator_depth;
    id->initiator_depth = req->responder_resources;
    id->dest_rd_atomic = ALB_MIN(id->responder_resources, (uint8_t)RD_ATOMIC_MAX);
    id->rd_atomic = ALB_MIN(id->initiator_depth, (uint8_t)RD_ATOMIC_MAX);
    id->retry_count = req->retry_count;
    id->rnr_retry_count = req->rnr_retry_count;
    id->timeout_code = id->has_ack_timeout ? id->ack_timeout : req->primary.ack_timeout;
    id->mtu_code = ALB_MIN(req->mtu, local_mtu_code());
    id->remote_qpn = req->qpn;
    id->sq_psn = req->starting_psn;
    id->id.qp_type = req->transport == ALB_CM_TRANSPORT_UC         ? IBV_QPT_UC
                     : req->transport == ALB_CM_TRANSPORT_EXTENDED ? IBV_QPT_XRC_RECV
                                                                   : IBV_QPT_RC;
}

static void on_request(const struct alb_cm_event *from)
{
    struct rdmacm_id *listener = from->listener_user;
    struct rdmacm_id *id = id_of_request(listener, from);
    struct rdmacm_event *event = id ? rdmacm_event_new(id, RDMA_CM_EVENT_CONNECT_REQUEST, 0) : NULL;
    if (!event || rdmacm_event_reserve(id)) {
        free(event);
        if (id)
            rdmacm_id_free(id);
        alb_cm_id_destroy(from->id, alb_device_now());
        return;
    }
    alb_cm_id_set_user(from->id, id);
    id->remote_ece = from->message.ece;
    event->event.listen_id = &listener->id;
    event->fresh = id;
    if (from->type == ALB_CM_EVENT_REQUEST) {
        take_request(id, &from->message.req);
        fill_conn(event, &from->message);
    } else {
        id->id.qp_type = IBV_QPT_UD;
        struct rdma_ud_param *ud = &event->event.param.ud;
        ud->private_data_len = (uint8_t)private_data(event, &from->message);
        ud->private_data = event->private_data;
    }
    rdmacm_post(listener, event);
}

static void on_response(struct rdmacm_id *id, const struct alb_cm_message *message)
{
    struct rdmacm_event *event = rdmacm_event_new(id, RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
    if (!event)
        return; // the peer asks again
    id->remote_qpn = alb_cm_rep_qpn(&message->rep);
    id->sq_psn = message->rep.starting_psn;
    id->remote_ece = message->ece;
    id->rnr_retry_count = message->rep.rnr_retry_count;
    event->is_response = true;
    fill_conn(event, message);
    rdmacm_post(id, event);
}

static void on_sidr_response(struct rdmacm_id *id, const struct alb_cm_message *message)
{
    const struct alb_cm_sidr_rep *rep = &message->sidr_rep;
    bool is_valid = rep->status == ALB_CM_SIDR_VALID;
    struct rdmacm_event *event = rdmacm_event_new(id, is_valid ? RDMA_CM_EVENT_ESTABLISHED : RDMA_CM_EVENT_UNREACHABLE,
                                                  is_valid ? 0 : rep->status);
    if (!event)
        return;
    id->remote_ece = message->ece;
    struct rdma_ud_param *ud = &event->event.param.ud;
    *ud = (struct rdma_ud_param){
        .private_data = event->private_data,
        .private_data_len = (uint8_t)private_data(event, message),
        .ah_attr = {.is_global = 1,
                    .port_num = RDMACM_PORT,
                    .grh = {.sgid_index = (uint8_t)id->gid_index,
                            .hop_limit = RDMACM_HOP_LIMIT,
                            .traffic_class = id->tos}},
        .qp_num = rep->qpn,
        .qkey = rep->qkey,
    };
    memcpy(ud->ah_attr.grh.dgid.raw, id->av.peer.bytes, 16);
    rdmacm_post(id, event);
}

static void on_rejected(struct rdmacm_id *id, const struct alb_cm_message *message)
{
    struct rdmacm_event *event = rdmacm_event_new(id, RDMA_CM_EVENT_REJECTED, message->rej.reason);
    if (!event)
        return;
    fill_conn(event, message);
    rdmacm_post(id, event);
}

void rdmacm_on_engine_event(const struct alb_cm_event *event)
{
    struct rdmacm_id *id = event->user;
    switch (event->type) {
    case ALB_CM_EVENT_REQUEST:
    case ALB_CM_EVENT_SIDR_REQUEST:
        on_request(event);
        break;
    case ALB_CM_EVENT_RESPONSE:
        on_response(id, &event->message);
        break;
    case ALB_CM_EVENT_SIDR_RESPONSE:
        on_sidr_response(id, &event->message);
        break;
    case ALB_CM_EVENT_REJECTED:
        on_rejected(id, &event->message);
        break;
    case ALB_CM_EVENT_ESTABLISHED:
        rdmacm_post_plain(id, RDMA_CM_EVENT_ESTABLISHED, 0);
        break;
    case ALB_CM_EVENT_TIMED_OUT:
        rdmacm_post_plain(id, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
        break;
    case ALB_CM_EVENT_DISCONNECTED:
        rdmacm_post_plain(id, RDMA_CM_EVENT_DISCONNECTED, 0);
        break;
    case ALB_CM_EVENT_TIMEWAIT_OVER:
        rdmacm_post_plain(id, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
        break;
    case ALB_CM_EVENT_TYPES:
        break;
    }
}
