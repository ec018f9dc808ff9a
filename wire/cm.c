// SPDX-License-Identifier: BSD-2-Clause
// Encoding and decoding of the communication manager's messages, straight along the tables of chapter 12. Offsets count
// from the end of the MAD header.
#include "wire/cm.h"

#include "wire/bytes.h"

// What each message looks like from outside.
static const struct {
    const char *name;
    uint8_t private_offset;
    uint8_t private_bytes;
    bool has_remote_id;
} shapes[] = {
    [ALB_CM_REQ - ALB_CM_REQ] = {"req", 140, 92, false},
    [ALB_CM_MRA - ALB_CM_REQ] = {"mra", 10, 222, true},
    [ALB_CM_REJ - ALB_CM_REQ] = {"rej", 84, 148, true},
    [ALB_CM_REP - ALB_CM_REQ] = {"rep", 36, 196, true},
    [ALB_CM_RTU - ALB_CM_REQ] = {"rtu", 8, 224, true},
    [ALB_CM_DREQ - ALB_CM_REQ] = {"dreq", 12, 220, true},
    [ALB_CM_DREP - ALB_CM_REQ] = {"drep", 8, 224, true},
    [ALB_CM_SIDR_REQ - ALB_CM_REQ] = {"sidr_req", 16, 216, false},
    [ALB_CM_SIDR_REP - ALB_CM_REQ] = {"sidr_rep", 96, 136, false},
    [ALB_CM_LAP - ALB_CM_REQ] = {"lap", 64, 168, true},
    [ALB_CM_APR - ALB_CM_REQ] = {"apr", 84, 148, true},
};

static bool is_known(unsigned type)
{
    return type >= ALB_CM_REQ && type <= ALB_CM_APR;
}

const char *alb_cm_type_name(enum alb_cm_type type)
{
    return is_known(type) ? shapes[type - ALB_CM_REQ].name : "invalid";
}

uint32_t alb_cm_private_bytes(enum alb_cm_type type)
{
    return is_known(type) ? shapes[type - ALB_CM_REQ].private_bytes : 0;
}

// ---- a path: 44 bytes -----------------------------------------------------------------------------------------------

static void decode_path(const uint8_t *p, struct alb_cm_path *path)
{
    uint32_t flow = alb_get_be32(p + 36);
    path->local_lid = alb_get_be16(p);
    path->remote_lid = alb_get_be16(p + 2);
    memcpy(path->local_gid.bytes, p + 4, 16);
    memcpy(path->remote_gid.bytes, p + 20, 16);
    path->flow_label = flow >> 12;
    path->packet_rate = flow & 63;
    path->traffic_class = p[40];
    path->hop_limit = p[41];
    path->sl = p[42] >> 4;
    path->subnet_local = p[42] & 8;
    path->ack_timeout = p[43] >> 3;
}

static void encode_path(const struct alb_cm_path *path, uint8_t *p)
{
    alb_put_be16(p, path->local_lid);
    alb_put_be16(p + 2, path->remote_lid);
    memcpy(p + 4, path->local_gid.bytes, 16);
    memcpy(p + 20, path->remote_gid.bytes, 16);
    alb_put_be32(p + 36, path->flow_label << 12 | (path->packet_rate & 63));
    p[40] = path->traffic_class;
    p[41] = path->hop_limit;
    p[42] = (uint8_t)(path->sl << 4 | (path->subnet_local ? 8 : 0));
    p[43] = (uint8_t)(path->ack_timeout << 3);
}

// ---- the messages ---------------------------------------------------------------------------------------------------

static void decode_req(const uint8_t *p, struct alb_cm_req *req)
{
    req->service_id = alb_get_be64(p + 8);
    req->ca_guid = alb_get_be64(p + 16);
    req->qkey = alb_get_be32(p + 28);
    req->qpn = alb_get_be24(p + 32);
    req->responder_resources = p[35];
    req->initiator_depth = p[39];
    req->remote_response_timeout = p[43] >> 3;
    req->transport = p[43] >> 1 & 3;
    req->flow_control = p[43] & 1;
    req->starting_psn = alb_get_be24(p + 44);
    req->local_response_timeout = p[47] >> 3;
    req->retry_count = p[47] & 7;
    req->pkey = alb_get_be16(p + 48);
    req->mtu = p[50] >> 4;
    req->rnr_retry_count = p[50] & 7;
    req->max_cm_retries = p[51] >> 4;
    req->has_srq = p[51] & 8;
    req->extended_transport = p[51] & 7;
    decode_path(p + 52, &req->primary);
    decode_path(p + 96, &req->alternate);
}

static void encode_req(const struct alb_cm_req *req, uint8_t *p)
{
    alb_put_be64(p + 8, req->service_id);
    alb_put_be64(p + 16, req->ca_guid);
    alb_put_be32(p + 28, req->qkey);
    alb_put_be24(p + 32, req->qpn);
    p[35] = req->responder_resources;
    p[39] = req->initiator_depth;
    p[43] = (uint8_t)(req->remote_response_timeout << 3 | (req->transport & 3) << 1 | (req->flow_control ? 1 : 0));
    alb_put_be24(p + 44, req->starting_psn);
    p[47] = (uint8_t)(req->local_response_timeout << 3 | (req->retry_count & 7));
    alb_put_be16(p + 48, req->pkey);
    p[50] = (uint8_t)(req->mtu << 4 | (req->rnr_retry_count & 7));
    p[51] = (uint8_t)(req->max_cm_retries << 4 | (req->has_srq ? 8 : 0) | (req->extended_transport & 7));
    encode_path(&req->primary, p + 52);
    encode_path(&req->alternate, p + 96);
}

static void decode_rep(const uint8_t *p, struct alb_cm_rep *rep)
{
    rep->qkey = alb_get_be32(p + 8);
    rep->qpn = alb_get_be24(p + 12);
    rep->eecn = alb_get_be24(p + 16);
    rep->starting_psn = alb_get_be24(p + 20);
    rep->responder_resources = p[24];
    rep->initiator_depth = p[25];
    rep->target_ack_delay = p[26] >> 3;
    rep->failover_accepted = p[26] >> 1 & 3;
    rep->flow_control = p[26] & 1;
    rep->rnr_retry_count = p[27] >> 5;
    rep->has_srq = p[27] & 16;
    rep->ca_guid = alb_get_be64(p + 28);
}

static void encode_rep(const struct alb_cm_rep *rep, uint8_t *p)
{
    alb_put_be32(p + 8, rep->qkey);
    alb_put_be24(p + 12, rep->qpn);
    alb_put_be24(p + 16, rep->eecn);
    alb_put_be24(p + 20, rep->starting_psn);
    p[24] = rep->responder_resources;
    p[25] = rep->initiator_depth;
    p[26] = (uint8_t)(rep->target_ack_delay << 3 | (rep->failover_accepted & 3) << 1 | (rep->flow_control ? 1 : 0));
    p[27] = (uint8_t)(rep->rnr_retry_count << 5 | (rep->has_srq ? 16 : 0));
    alb_put_be64(p + 28, rep->ca_guid);
}

// A count of additional information that the field has no room for is the sender's mistake; what fits is taken.
static uint8_t info_bytes(unsigned count)
{
    return (uint8_t)ALB_MIN(count, (unsigned)ALB_CM_INFO_MAX);
}

static void decode_rej(const uint8_t *p, struct alb_cm_rej *rej)
{
    rej->answers = p[8] >> 6;
    rej->info_bytes = info_bytes(p[9] >> 1);
    rej->reason = alb_get_be16(p + 10);
    memcpy(rej->info, p + 12, ALB_CM_INFO_MAX);
}

static void encode_rej(const struct alb_cm_rej *rej, uint8_t *p)
{
    p[8] = (uint8_t)(rej->answers << 6);
    p[9] = (uint8_t)(info_bytes(rej->info_bytes) << 1);
    alb_put_be16(p + 10, rej->reason);
    memcpy(p + 12, rej->info, ALB_CM_INFO_MAX);
}

static void decode_sidr_rep(const uint8_t *p, struct alb_cm_sidr_rep *rep)
{
    rep->status = p[4];
    rep->info_bytes = info_bytes(p[5]);
    rep->qpn = alb_get_be24(p + 8);
    rep->service_id = alb_get_be64(p + 12);
    rep->qkey = alb_get_be32(p + 20);
    memcpy(rep->info, p + 24, ALB_CM_INFO_MAX);
}

static void encode_sidr_rep(const struct alb_cm_sidr_rep *rep, uint8_t *p)
{
    p[4] = rep->status;
    p[5] = info_bytes(rep->info_bytes);
    alb_put_be24(p + 8, rep->qpn);
    alb_put_be64(p + 12, rep->service_id);
    alb_put_be32(p + 20, rep->qkey);
    memcpy(p + 24, rep->info, ALB_CM_INFO_MAX);
}

// ---- enhanced connection establishment ------------------------------------------------------------------------------

// The vendor id stands in what was reserved; the options are the MAD's attribute modifier.
static uint32_t decode_vendor(enum alb_cm_type type, const uint8_t *p)
{
    switch (type) {
    case ALB_CM_REQ:
        return alb_get_be24(p + 5);
    case ALB_CM_REP:
        return (uint32_t)p[15] << 16 | (uint32_t)p[19] << 8 | p[23];
    case ALB_CM_SIDR_REP:
        return (uint32_t)alb_get_be16(p + 6) << 8 | p[11];
    default:
        return 0;
    }
}

static void encode_vendor(enum alb_cm_type type, uint32_t vendor_id, uint8_t *p)
{
    switch (type) {
    case ALB_CM_REQ:
        alb_put_be24(p + 5, vendor_id);
        break;
    case ALB_CM_REP:
        p[15] = (uint8_t)(vendor_id >> 16);
        p[19] = (uint8_t)(vendor_id >> 8);
        p[23] = (uint8_t)vendor_id;
        break;
    case ALB_CM_SIDR_REP:
        alb_put_be16(p + 6, (uint16_t)(vendor_id >> 8));
        p[11] = (uint8_t)vendor_id;
        break;
    default:
        break;
    }
}

static bool has_ece(enum alb_cm_type type)
{
    return type == ALB_CM_REQ || type == ALB_CM_REP || type == ALB_CM_SIDR_REP;
}

static void decode_body(const uint8_t *p, struct alb_cm_message *out)
{
    switch (out->type) {
    case ALB_CM_REQ:
        decode_req(p, &out->req);
        break;
    case ALB_CM_MRA:
        out->mra = (struct alb_cm_mra){.answers = p[8] >> 6, .service_timeout = p[9] >> 3};
        break;
    case ALB_CM_REJ:
        decode_rej(p, &out->rej);
        break;
    case ALB_CM_REP:
        decode_rep(p, &out->rep);
        break;
    case ALB_CM_DREQ:
        out->dreq_qpn = alb_get_be24(p + 8);
        break;
    case ALB_CM_SIDR_REQ:
        out->sidr_req = (struct alb_cm_sidr_req){.pkey = alb_get_be16(p + 4), .service_id = alb_get_be64(p + 8)};
        break;
    case ALB_CM_SIDR_REP:
        decode_sidr_rep(p, &out->sidr_rep);
        break;
    case ALB_CM_APR:
        out->apr.info_bytes = info_bytes(p[8]);
        out->apr.status = p[9];
        memcpy(out->apr.info, p + 12, ALB_CM_INFO_MAX);
        break;
    case ALB_CM_RTU:
    case ALB_CM_DREP:
    case ALB_CM_LAP:
        break;
    }
}

static void encode_body(const struct alb_cm_message *message, uint8_t *p)
{
    switch (message->type) {
    case ALB_CM_REQ:
        encode_req(&message->req, p);
        break;
    case ALB_CM_MRA:
        p[8] = (uint8_t)(message->mra.answers << 6);
        p[9] = (uint8_t)(message->mra.service_timeout << 3);
        break;
    case ALB_CM_REJ:
        encode_rej(&message->rej, p);
        break;
    case ALB_CM_REP:
        encode_rep(&message->rep, p);
        break;
    case ALB_CM_DREQ:
        alb_put_be24(p + 8, message->dreq_qpn);
        break;
    case ALB_CM_SIDR_REQ:
        alb_put_be16(p + 4, message->sidr_req.pkey);
        alb_put_be64(p + 8, message->sidr_req.service_id);
        break;
    case ALB_CM_SIDR_REP:
        encode_sidr_rep(&message->sidr_rep, p);
        break;
    case ALB_CM_APR:
        p[8] = info_bytes(message->apr.info_bytes);
        p[9] = message->apr.status;
        memcpy(p + 12, message->apr.info, ALB_CM_INFO_MAX);
        break;
    case ALB_CM_RTU:
    case ALB_CM_DREP:
        break;
    case ALB_CM_LAP:
        alb_assert(message->type != ALB_CM_LAP);
    }
}

bool alb_cm_decode(const uint8_t *bytes, uint32_t length, struct alb_cm_message *out)
{
    struct alb_mad mad;
    if (!alb_mad_decode(bytes, length, &mad) || mad.management_class != ALB_MAD_CLASS_CM ||
        mad.class_version != ALB_CM_CLASS_VERSION || mad.method != ALB_MAD_SEND || !is_known(mad.attribute))
        return false;
    const uint8_t *p = bytes + ALB_MAD_HEADER_BYTES;
    memset(out, 0, sizeof(*out));
    out->type = (enum alb_cm_type)mad.attribute;
    out->transaction = mad.transaction;
    out->local_id = alb_get_be32(p);
    out->remote_id = shapes[out->type - ALB_CM_REQ].has_remote_id ? alb_get_be32(p + 4) : ALB_CM_NEVER_REMOTE;
    decode_body(p, out);
    if (has_ece(out->type))
        out->ece = (struct alb_cm_ece){.vendor_id = decode_vendor(out->type, p), .options = mad.modifier};
    memcpy(out->private_data, p + shapes[out->type - ALB_CM_REQ].private_offset, alb_cm_private_bytes(out->type));
    return true;
}

void alb_cm_encode(const struct alb_cm_message *message, uint8_t *out)
{
    alb_assert(is_known(message->type));
    struct alb_mad mad = {
        .base_version = ALB_MAD_BASE_VERSION,
        .management_class = ALB_MAD_CLASS_CM,
        .class_version = ALB_CM_CLASS_VERSION,
        .method = ALB_MAD_SEND,
        .transaction = message->transaction,
        .attribute = (uint16_t)message->type,
        .modifier = has_ece(message->type) ? message->ece.options : 0,
    };
    uint8_t *p = out + ALB_MAD_HEADER_BYTES;
    memset(out, 0, ALB_MAD_BYTES);
    alb_mad_encode(&mad, out);
    alb_put_be32(p, message->local_id);
    if (shapes[message->type - ALB_CM_REQ].has_remote_id)
        alb_put_be32(p + 4, message->remote_id);
    encode_body(message, p);
    encode_vendor(message->type, message->ece.vendor_id, p);
    memcpy(p + shapes[message->type - ALB_CM_REQ].private_offset, message->private_data,
           alb_cm_private_bytes(message->type));
}

// ---- RDMA IP CM service ---------------------------------------------------------------------------------------------

// Version (0), IP version in the high four bits, source port, source and destination address of 16 bytes each, an IPv4
// address in the last four of them.
static void decode_address(const uint8_t *p, bool is_ipv4, struct alb_addr *addr)
{
    if (is_ipv4)
        *addr = alb_addr_from_ipv4(p + 12);
    else
        memcpy(addr->bytes, p, 16);
}

static void encode_address(const struct alb_addr *addr, bool is_ipv4, uint8_t *p)
{
    memset(p, 0, 16);
    memcpy(p + (is_ipv4 ? 12 : 0), addr->bytes + (is_ipv4 ? 12 : 0), is_ipv4 ? 4 : 16);
}

bool alb_cm_ip_header_decode(const uint8_t *bytes, struct alb_cm_ip_header *out)
{
    unsigned version = bytes[1] >> 4;
    if (bytes[0] != 0 || (version != 4 && version != 6))
        return false;
    out->source_port = alb_get_be16(bytes + 2);
    decode_address(bytes + 4, version == 4, &out->source);
    decode_address(bytes + 20, version == 4, &out->destination);
    return true;
}

void alb_cm_ip_header_encode(const struct alb_cm_ip_header *header, uint8_t *out)
{
    bool is_ipv4 = alb_addr_is_ipv4(&header->destination);
    out[0] = 0;
    out[1] = is_ipv4 ? 0x40 : 0x60;
    alb_put_be16(out + 2, header->source_port);
    encode_address(&header->source, is_ipv4, out + 4);
    encode_address(&header->destination, is_ipv4, out + 20);
}
