// SPDX-License-Identifier: BSD-2-Clause
// Connecting: what programs ask of the connection manager.
#include "plugins/rdmacm/door.h"

#include <string.h>
#include <sys/random.h>

#define RETRIES_MAX 7 // three bits in a message

uint32_t rdmacm_random_psn(void)
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

static uint8_t ack_code(const struct rdmacm_id *id)
{
    return id->has_ack_timeout ? id->ack_timeout : RDMACM_ACK_CODE;
}

// A program that gives no data may give a length.
static struct alb_cm_private data_of(const struct rdma_conn_param *param)
{
    bool has_some = param && param->private_data;
    return (struct alb_cm_private){has_some ? param->private_data : NULL, has_some ? param->private_data_len : 0};
}

// rdma_connect(3), rdma_accept(3): no more at a time than the device has; the greatest numbers stand for that.
static int check(const struct rdmacm_id *id, const struct rdma_conn_param *param)
{
    if (id->id.ps != RDMA_PS_TCP)
        return 0;
    if (!param)
        return id->id.qp ? 0 : EINVAL;
    bool is_too_deep =
        param->responder_resources > RDMACM_RD_ATOMIC_MAX && param->responder_resources != RDMA_MAX_RESP_RES;
    is_too_deep |= param->initiator_depth > RDMACM_RD_ATOMIC_MAX && param->initiator_depth != RDMA_MAX_INIT_DEPTH;
    return is_too_deep ? EINVAL : 0;
}

// The program's private data, behind the header by which IP services know their peers and what rdma_getaddrinfo gave.
struct payload {
    uint8_t bytes[ALB_CM_PRIVATE_MAX];
    struct alb_cm_private data;
};

static int with_header(const struct rdmacm_id *id, enum alb_cm_type type, const struct rdma_conn_param *param,
                       struct payload *payload)
{
    struct alb_cm_ip_header header;
    uint16_t port;
    struct alb_cm_private data = data_of(param);
    uint32_t before = ALB_CM_IP_HEADER_BYTES + id->ep_data_bytes;
    if (before + data.length > alb_cm_private_bytes(type))
        return EINVAL;
    rdmacm_get_sockaddr(&id->id.route.addr.src_addr, &header.source, &header.source_port);
    rdmacm_get_sockaddr(&id->id.route.addr.dst_addr, &header.destination, &port);
    alb_cm_ip_header_encode(&header, payload->bytes);
    if (id->ep_data_bytes)
        memcpy(payload->bytes + ALB_CM_IP_HEADER_BYTES, id->ep_data, id->ep_data_bytes);
    if (data.length)
        memcpy(payload->bytes + before, data.bytes, data.length);
    payload->data = (struct alb_cm_private){payload->bytes, before + data.length};
    return 0;
}

static struct alb_cm_req request(struct rdmacm_id *id, const struct rdma_conn_param *param)
{
    id->dest_rd_atomic =
        param ? ALB_MIN(param->responder_resources, (uint8_t)RDMACM_RD_ATOMIC_MAX) : RDMACM_RD_ATOMIC_MAX;
    id->rd_atomic = param ? ALB_MIN(param->initiator_depth, (uint8_t)RDMACM_RD_ATOMIC_MAX) : RDMACM_RD_ATOMIC_MAX;
    id->retry_count = param ? retries(param->retry_count) : RETRIES_MAX;
    id->rnr_retry_count = param ? retries(param->rnr_retry_count) : RETRIES_MAX;
    id->timeout_code = ack_code(id);
    id->mtu_code = rdmacm_mtu_code();
    id->rq_psn = rdmacm_random_psn();
    bool is_xrc = id->id.qp_type == IBV_QPT_XRC_SEND;
    int cancel = rdmacm_qp_lock(id);
    id->qpn = rdmacm_qp_number(id, param);
    bool has_srq = rdmacm_qp_has_srq(id, param);
    rdmacm_qp_unlock(id, cancel);
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
        .has_srq = has_srq,
        .primary = {.local_lid = 0xffff,
                    .remote_lid = 0xffff,
                    .local_gid = id->av.local,
                    .remote_gid = id->av.peer,
                    .traffic_class = id->tos,
                    .hop_limit = RDMACM_HOP_LIMIT,
                    .ack_timeout = ack_code(id)},
    };
}

static int connect_now(struct rdmacm_id *id, const struct rdma_conn_param *param)
{
    struct payload payload;
    struct alb_cm_req req = request(id, param);
    struct alb_cm_target target = rdmacm_target_of(id);
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
    if (rdmacm_is_begun(id) || !id->has_route)
        return rdmacm_fail(EINVAL);
    int error = check(id, param);
    if (!error)
        error = rdmacm_channel_error(id);
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
    if (data->length > alb_cm_private_bytes(ALB_CM_REP)) // nothing has changed yet: the program may try again
        return EINVAL;
    bool asks_all = !param || param->initiator_depth == RDMA_MAX_INIT_DEPTH;
    bool gives_all = !param || param->responder_resources == RDMA_MAX_RESP_RES;
    id->rd_atomic = ALB_MIN(asks_all ? id->initiator_depth : param->initiator_depth, (uint8_t)RDMACM_RD_ATOMIC_MAX);
    id->dest_rd_atomic =
        ALB_MIN(gives_all ? id->responder_resources : param->responder_resources, (uint8_t)RDMACM_RD_ATOMIC_MAX);
    bool is_xrc = id->id.qp_type == IBV_QPT_XRC_RECV;
    int cancel = rdmacm_qp_lock(id);
    int error = rdmacm_qp_connect(id);
    uint32_t qpn = rdmacm_qp_number(id, param);
    bool has_srq = is_xrc || rdmacm_qp_has_srq(id, param);
    rdmacm_qp_unlock(id, cancel);
    if (error)
        return error;
    struct alb_cm_rep rep = {
        .qpn = is_xrc ? 0 : qpn,
        .eecn = is_xrc ? qpn : 0,
        .starting_psn = id->rq_psn,
        .responder_resources = id->dest_rd_atomic,
        .initiator_depth = id->rd_atomic,
        .target_ack_delay = 15,
        .flow_control = param && param->flow_control,
        .rnr_retry_count = param ? retries(param->rnr_retry_count) : RETRIES_MAX,
        .has_srq = has_srq,
        .ca_guid = be64toh(ibv_get_device_guid(id->id.verbs->device)),
    };
    rdmacm_lock();
    if (id->cm)
        alb_cm_id_set_ece(id->cm, &id->local_ece);
    error = id->cm ? alb_cm_accept(id->cm, &rep, data, alb_device_now()) : EINVAL;
    if (!error)
        id->is_unaccepted = false;
    rdmacm_unlock();
    if (error) // the queue pair is connected to one that will not be
        rdmacm_qp_error(id);
    return error;
}

static int accept_datagrams(struct rdmacm_id *id, const struct rdma_conn_param *param,
                            const struct alb_cm_private *data)
{
    int cancel = rdmacm_qp_lock(id);
    uint32_t qpn = rdmacm_qp_number(id, param);
    rdmacm_qp_unlock(id, cancel);
    uint32_t qkey = id->qkey ? id->qkey : RDMA_UDP_QKEY;
    rdmacm_lock();
    if (id->cm)
        alb_cm_id_set_ece(id->cm, &id->local_ece);
    int error = id->cm ? alb_cm_answer(id->cm, ALB_CM_SIDR_VALID, qpn, qkey, data, alb_device_now()) : EINVAL;
    rdmacm_unlock();
    return error;
}

int rdma_accept(struct rdma_cm_id *outer, struct rdma_conn_param *param)
{
    struct rdmacm_id *id = rdmacm_id(outer);
    struct alb_cm_private data = data_of(param);
    if (rdmacm_is_forked(id))
        return rdmacm_fail(ENODEV);
    if (!rdmacm_is_begun(id) || id->is_listening)
        return rdmacm_fail(EINVAL);
    int error = check(id, param);
    if (!error)
        error = is_datagram(id) ? accept_datagrams(id, param, &data) : accept_connection(id, param, &data);
    if (error)
        return rdmacm_fail(error);
    if (!is_datagram(id))
        return rdmacm_result(rdmacm_complete(id));
    rdmacm_drop_kept(id);
    return 0;
}

int rdmacm_reject(struct rdmacm_id *id, enum alb_cm_rej_reason reason, const void *private_data, uint8_t length)
{
    struct alb_cm_private data = {private_data, private_data ? length : 0};
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
    bool is_late = id->cm && alb_cm_id_state(id->cm) == ALB_CM_ESTABLISHED;
    int error = !id->cm ? EINVAL : is_late ? EISCONN : alb_cm_notice_traffic(id->cm, alb_device_now());
    rdmacm_unlock();
    return rdmacm_result(error);
}

int rdma_disconnect(struct rdma_cm_id *outer)
{
    struct rdmacm_id *id = rdmacm_id(outer);
    if (rdmacm_is_forked(id))
        return rdmacm_fail(ENODEV);
    if (!rdmacm_is_begun(id) || id->is_listening)
        return rdmacm_fail(EINVAL);
    int error = rdmacm_qp_error(id);
    if (error)
        return rdmacm_fail(error);
    rdmacm_lock();
    bool asks = id->cm && alb_cm_disconnect(id->cm, NULL, alb_device_now()) == 0;
    id->has_disconnected = true;
    rdmacm_tell_timewait_exit(id);
    rdmacm_unlock();
    // What is not connected any more (or not yet) has its queue pair in error, and that is all there is to do.
    return asks ? rdmacm_result(rdmacm_complete(id)) : 0;
}
