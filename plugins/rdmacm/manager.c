// SPDX-License-Identifier: BSD-2-Clause
// What the connection manager says, as events for programs.
#include "plugins/rdmacm/door.h"

#include <stdlib.h>
#include <string.h>

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
    if (event->type == ALB_CM_EVENT_REQUEST) // not the listener's: both sides are of one class, as with a kernel
        id->tos = event->message.req.primary.traffic_class;
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

static enum ibv_qp_type type_of(const struct alb_cm_req *req)
{
    return req->transport == ALB_CM_TRANSPORT_UC         ? IBV_QPT_UC
           : req->transport == ALB_CM_TRANSPORT_EXTENDED ? IBV_QPT_XRC_RECV
                                                         : IBV_QPT_RC;
}

// As with a kernel, which does not know whether a queue pair of PS_TCP is RC or UC.
static bool is_served_by(const struct alb_cm_event *from, const struct rdmacm_id *listener)
{
    enum ibv_qp_type type = listener->id.qp_type;
    if (from->type != ALB_CM_EVENT_REQUEST)
        return type == IBV_QPT_UD;
    return type != IBV_QPT_UD && (type_of(&from->message.req) == IBV_QPT_XRC_RECV) == (type == IBV_QPT_XRC_RECV);
}

// All that rdma_init_qp_attr needs before the request is accepted, too.
static void take_request(struct rdmacm_id *id, const struct alb_cm_req *req)
{
    id->rq_psn = rdmacm_random_psn();
    id->responder_resources = req->initiator_depth;
    id->initiator_depth = req->responder_resources;
    id->dest_rd_atomic = ALB_MIN(id->responder_resources, (uint8_t)RDMACM_RD_ATOMIC_MAX);
    id->rd_atomic = ALB_MIN(id->initiator_depth, (uint8_t)RDMACM_RD_ATOMIC_MAX);
    id->retry_count = req->retry_count;
    id->rnr_retry_count = req->rnr_retry_count;
    id->timeout_code = req->primary.ack_timeout;
    id->mtu_code = ALB_MIN(req->mtu, rdmacm_mtu_code()); // which differ on albedo0 only, where nothing depends on them
    id->remote_qpn = req->qpn;
    id->sq_psn = req->starting_psn;
    id->knows_peer = true;
    id->is_unaccepted = true;
    id->id.qp_type = type_of(req);
    rdmacm_set_path(id, id->mtu_code, id->timeout_code);
}

static void on_request(const struct alb_cm_event *from)
{
    struct rdmacm_id *listener = from->listener_user;
    struct rdmacm_id *id = is_served_by(from, listener) ? id_of_request(listener, from) : NULL;
    struct rdmacm_event *event = id ? rdmacm_event_new(id, RDMA_CM_EVENT_CONNECT_REQUEST, 0) : NULL;
    if (!event || rdmacm_event_reserve(id)) {
        free(event);
        if (id)
            rdmacm_id_free(id);
        alb_cm_id_destroy(from->id, alb_device_now());
        alb_cm_request_taken(from->listener);
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
    id->path.mtu = id->mtu_code = alb_cm_id_mtu(id->cm);
    id->remote_ece = message->ece;
    id->rnr_retry_count = message->rep.rnr_retry_count;
    id->rd_atomic = ALB_MIN(id->rd_atomic, message->rep.responder_resources);
    id->dest_rd_atomic = ALB_MIN(id->dest_rd_atomic, message->rep.initiator_depth);
    id->knows_peer = true;
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
    if (rep->status == ALB_CM_SIDR_UNSUPPORTED)
        rdmacm_why_nobody_listens(id);
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

// A program sets the context of an id when it accepts: until then it is the listener's, and would be taken for it. A
// kernel is as silent, and accepting fails.
static void on_rejected(struct rdmacm_id *id, const struct alb_cm_message *message)
{
    if (id->is_unaccepted)
        return;
    struct rdmacm_event *event = rdmacm_event_new(id, RDMA_CM_EVENT_REJECTED, message->rej.reason);
    if (message->rej.reason == ALB_CM_REJ_INVALID_SERVICE_ID)
        rdmacm_why_nobody_listens(id);
    if (!event)
        return;
    fill_conn(event, message);
    rdmacm_post(id, event);
}

static void on_timed_out(struct rdmacm_id *id)
{
    if (!id->knows_peer) // else it is one that has called, and is gone
        rdmacm_why_no_answer(id);
    rdmacm_post_plain(id, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
}

// A kernel does not answer a peer that disconnects, and does not begin TIMEWAIT, until the program disconnects, too.
// Here the peer is answered at once, and the program is told what it would be told there: one that leaves the id alone
// hears no more of it, and may take what it does not expect for an error.
void rdmacm_tell_timewait_exit(struct rdmacm_id *id)
{
    if (!id->is_timewait_over || !id->has_disconnected)
        return;
    id->is_timewait_over = false;
    rdmacm_post_plain(id, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
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
        on_timed_out(id);
        break;
    case ALB_CM_EVENT_DISCONNECTED:
        rdmacm_post_plain(id, RDMA_CM_EVENT_DISCONNECTED, 0);
        break;
    case ALB_CM_EVENT_DISCONNECT_TIMED_OUT:
        rdmacm_post_plain(id, RDMA_CM_EVENT_DISCONNECTED, -ETIMEDOUT);
        break;
    case ALB_CM_EVENT_TIMEWAIT_OVER:
        id->is_timewait_over = true;
        rdmacm_tell_timewait_exit(id);
        break;
    case ALB_CM_EVENT_TYPES:
        break;
    }
}
