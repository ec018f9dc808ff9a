// SPDX-License-Identifier: BSD-2-Clause
// The messages of the communication manager: management datagrams <-> structs (InfiniBand specification, volume 1, 12.6
// and 12.11), and the service ids and private-data header by which IP ports are found (annex A11, RDMA IP CM service).
//
// Private data has a fixed length in each message and no count: what the sender did not fill is zero.
#pragma once

#include "base/addr.h"
#include "wire/drop.h"
#include "wire/mad.h"
#include "wire/psn.h"
#include "wire/roce.h"

// Attribute ids (table 106).
enum alb_cm_type {
    ALB_CM_REQ = 0x10,      // request for communication
    ALB_CM_MRA = 0x11,      // message receipt acknowledgement: it takes longer
    ALB_CM_REJ = 0x12,      // reject
    ALB_CM_REP = 0x13,      // reply to a request
    ALB_CM_RTU = 0x14,      // ready to use
    ALB_CM_DREQ = 0x15,     // request for disconnection
    ALB_CM_DREP = 0x16,     // reply to it
    ALB_CM_SIDR_REQ = 0x17, // service id resolution: which queue pair serves it
    ALB_CM_SIDR_REP = 0x18,
    ALB_CM_LAP = 0x19, // load alternate path
    ALB_CM_APR = 0x1a, // alternate path response
};

// "req", "mra" ...; "invalid" for another value.
const char *alb_cm_type_name(enum alb_cm_type type);

#define ALB_CM_PRIVATE_MAX  224 // the longest: of RTU and DREP
#define ALB_CM_INFO_MAX     72  // additional information of REJ, SIDR_REP and APR
#define ALB_CM_NEVER_REMOTE 0u  // a communication id that is not known

// How many bytes of private data a message of that type has; 0 for a value that is no type.
uint32_t alb_cm_private_bytes(enum alb_cm_type type);

// Why a REJ rejects (12.6.7.2).
enum alb_cm_rej_reason {
    ALB_CM_REJ_NO_QP = 1,
    ALB_CM_REJ_NO_EEC = 2,
    ALB_CM_REJ_NO_RESOURCES = 3,
    ALB_CM_REJ_TIMEOUT = 4,
    ALB_CM_REJ_UNSUPPORTED = 5,
    ALB_CM_REJ_INVALID_COMM_ID = 6,
    ALB_CM_REJ_INVALID_COMM_INSTANCE = 7,
    ALB_CM_REJ_INVALID_SERVICE_ID = 8,
    ALB_CM_REJ_INVALID_TRANSPORT_TYPE = 9,
    ALB_CM_REJ_STALE_CONNECTION = 10,
    ALB_CM_REJ_RDC_NOT_EXIST = 11,
    ALB_CM_REJ_INVALID_GID = 12,
    ALB_CM_REJ_INVALID_LID = 13,
    ALB_CM_REJ_INVALID_SL = 14,
    ALB_CM_REJ_INVALID_TRAFFIC_CLASS = 15,
    ALB_CM_REJ_INVALID_HOP_LIMIT = 16,
    ALB_CM_REJ_INVALID_PACKET_RATE = 17,
    ALB_CM_REJ_INVALID_ALT_GID = 18,
    ALB_CM_REJ_INVALID_ALT_LID = 19,
    ALB_CM_REJ_INVALID_ALT_SL = 20,
    ALB_CM_REJ_INVALID_ALT_TRAFFIC_CLASS = 21,
    ALB_CM_REJ_INVALID_ALT_HOP_LIMIT = 22,
    ALB_CM_REJ_INVALID_ALT_PACKET_RATE = 23,
    ALB_CM_REJ_PORT_CM_REDIRECT = 24,
    ALB_CM_REJ_PORT_REDIRECT = 25,
    ALB_CM_REJ_INVALID_MTU = 26,
    ALB_CM_REJ_INSUFFICIENT_RESP_RESOURCES = 27,
    ALB_CM_REJ_CONSUMER_DEFINED = 28,
    ALB_CM_REJ_INVALID_RNR_RETRY = 29,
    ALB_CM_REJ_DUPLICATE_LOCAL_COMM_ID = 30,
    ALB_CM_REJ_INVALID_CLASS_VERSION = 31,
    ALB_CM_REJ_INVALID_FLOW_LABEL = 32,
    ALB_CM_REJ_INVALID_ALT_FLOW_LABEL = 33,
    ALB_CM_REJ_VENDOR_OPTION = 35, // an enhanced connection establishment that is not supported
};

// Which message a REJ or an MRA answers.
enum alb_cm_answered {
    ALB_CM_ANSWERS_REQ = 0,
    ALB_CM_ANSWERS_REP = 1,
    ALB_CM_ANSWERS_OTHER = 2, // REJ: none of both (a timeout); MRA: LAP
};

// 12.11.2.1
enum alb_cm_sidr_status {
    ALB_CM_SIDR_VALID = 0,
    ALB_CM_SIDR_UNSUPPORTED = 1, // no such service
    ALB_CM_SIDR_REJECTED = 2,    // the service does not want to
    ALB_CM_SIDR_NO_QP = 3,
    ALB_CM_SIDR_REDIRECT = 4,
    ALB_CM_SIDR_VERSION = 5,
};

// 12.8.2.3
enum alb_cm_apr_status {
    ALB_CM_APR_LOADED = 0,
    ALB_CM_APR_INVALID_COMM_ID = 1,
    ALB_CM_APR_UNSUPPORTED = 2,
};

// The transport service that a REQ asks for.
enum alb_cm_transport {
    ALB_CM_TRANSPORT_RC = 0,
    ALB_CM_TRANSPORT_UC = 1,
    ALB_CM_TRANSPORT_RD = 2,
    ALB_CM_TRANSPORT_EXTENDED = 3, // extended_transport says which: 1 is XRC
};

#define ALB_CM_EXTENDED_XRC 1

struct alb_cm_path {
    uint16_t local_lid, remote_lid; // 0xffff on RoCE
    struct alb_addr local_gid, remote_gid;
    uint32_t flow_label;
    uint8_t packet_rate;
    uint8_t traffic_class;
    uint8_t hop_limit;
    uint8_t sl;
    bool subnet_local;
    uint8_t ack_timeout; // code: 4.096 us * 2^code
};

struct alb_cm_req {
    uint64_t service_id;
    uint64_t ca_guid;
    uint32_t qkey;
    alb_qpn qpn;
    uint8_t responder_resources;     // READs and atomics that the sender's queue pair answers at a time
    uint8_t initiator_depth;         // and asks at a time
    uint8_t remote_response_timeout; // code: within which the sender expects answers
    uint8_t local_response_timeout;  // code: within which the sender promises them
    uint8_t transport;               // enum alb_cm_transport
    uint8_t extended_transport;
    bool flow_control;
    alb_psn starting_psn; // with which the receiver of this message begins to send
    uint8_t retry_count;
    uint8_t rnr_retry_count;
    uint16_t pkey;
    uint8_t mtu; // code, as enum ibv_mtu
    uint8_t max_cm_retries;
    bool has_srq;
    struct alb_cm_path primary, alternate;
};

struct alb_cm_rep {
    uint32_t qkey;
    alb_qpn qpn;
    alb_psn starting_psn; // as in a request
    uint8_t responder_resources;
    uint8_t initiator_depth;
    uint8_t target_ack_delay; // code
    uint8_t failover_accepted;
    bool flow_control;
    uint8_t rnr_retry_count;
    bool has_srq;
    uint32_t eecn; // XRC: the receiving queue pair stands here, and qpn is 0
    uint64_t ca_guid;
};

// RC, UC or XRC.
static inline bool alb_cm_is_connected_service(const struct alb_cm_req *req)
{
    return req->transport == ALB_CM_TRANSPORT_RC || req->transport == ALB_CM_TRANSPORT_UC ||
           (req->transport == ALB_CM_TRANSPORT_EXTENDED && req->extended_transport == ALB_CM_EXTENDED_XRC);
}

// The queue pair of the replying side, whichever field it stands in.
static inline alb_qpn alb_cm_rep_qpn(const struct alb_cm_rep *rep)
{
    return rep->qpn ? rep->qpn : rep->eecn;
}

struct alb_cm_rej {
    uint8_t answers; // enum alb_cm_answered
    uint16_t reason; // enum alb_cm_rej_reason
    uint8_t info_bytes;
    uint8_t info[ALB_CM_INFO_MAX];
};

// What a REJ for INVALID_MTU adds: the largest MTU (code) that its sender takes, in the first four bits. 0: it says
// none.
static inline uint8_t alb_cm_rej_mtu(const struct alb_cm_rej *rej)
{
    return rej->info_bytes ? rej->info[0] >> 4 : 0;
}

static inline void alb_cm_rej_set_mtu(struct alb_cm_rej *rej, uint8_t mtu)
{
    rej->info_bytes = 1;
    rej->info[0] = (uint8_t)(mtu << 4);
}

struct alb_cm_mra {
    uint8_t answers;         // enum alb_cm_answered
    uint8_t service_timeout; // code
};

struct alb_cm_sidr_req {
    uint16_t pkey;
    uint64_t service_id;
};

struct alb_cm_sidr_rep {
    uint8_t status; // enum alb_cm_sidr_status
    alb_qpn qpn;
    uint64_t service_id;
    uint32_t qkey;
    uint8_t info_bytes;
    uint8_t info[ALB_CM_INFO_MAX];
};

struct alb_cm_apr {
    uint8_t status; // enum alb_cm_apr_status
    uint8_t info_bytes;
    uint8_t info[ALB_CM_INFO_MAX];
};

// Enhanced connection establishment: what a vendor's queue pairs agree on between themselves. vendor_id has 24 bits; 0:
// nothing.
struct alb_cm_ece {
    uint32_t vendor_id;
    uint32_t options;
};

// One message. Of a LAP only the communication ids are read.
struct alb_cm_message {
    enum alb_cm_type type;
    uint64_t transaction;
    uint32_t local_id;  // the sender's communication id; of SIDR messages: the request id
    uint32_t remote_id; // the receiver's, ALB_CM_NEVER_REMOTE if the sender does not know it
    union {
        struct alb_cm_req req;
        struct alb_cm_rep rep;
        struct alb_cm_rej rej;
        struct alb_cm_mra mra;
        alb_qpn dreq_qpn; // the receiver's queue pair
        struct alb_cm_sidr_req sidr_req;
        struct alb_cm_sidr_rep sidr_rep;
        struct alb_cm_apr apr;
    };
    struct alb_cm_ece ece; // of REQ, REP and SIDR_REP
    uint8_t private_data[ALB_CM_PRIVATE_MAX];
};

// Reads a management datagram of the CM class: its header, and the message. False, and *out undefined, if it is no
// message of this class and version, sent by the method Send, or of no known type.
bool alb_cm_decode(const uint8_t *bytes, uint32_t length, struct alb_cm_message *out);

// Writes ALB_MAD_BYTES; reserved bits are zero. A LAP is never sent (asserted).
void alb_cm_encode(const struct alb_cm_message *message, uint8_t *out);

// ---- RDMA IP CM service ---------------------------------------------------------------------------------------------

// Port spaces, as <rdma/rdma_cma.h> numbers them: their low byte is the IP protocol number in the service id.
enum alb_cm_port_space {
    ALB_CM_PS_IPOIB = 0x0002,
    ALB_CM_PS_TCP = 0x0106,
    ALB_CM_PS_UDP = 0x0111,
    ALB_CM_PS_IB = 0x013f,
};

static inline uint64_t alb_cm_service_id(enum alb_cm_port_space space, uint16_t port)
{
    return (uint64_t)space << 16 | port;
}

// Begins the private data of a REQ or SIDR_REQ to such a service.
#define ALB_CM_IP_HEADER_BYTES 36

struct alb_cm_ip_header {
    uint16_t source_port;
    struct alb_addr source, destination; // both of one family
};

// False if the bytes hold no header of version 0, or of neither IPv4 nor IPv6. bytes has ALB_CM_IP_HEADER_BYTES.
bool alb_cm_ip_header_decode(const uint8_t *bytes, struct alb_cm_ip_header *out);
// Writes ALB_CM_IP_HEADER_BYTES.
void alb_cm_ip_header_encode(const struct alb_cm_ip_header *header, uint8_t *out);
