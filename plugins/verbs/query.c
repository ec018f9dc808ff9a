// SPDX-License-Identifier: BSD-2-Clause
// ibv_query_device(3), ibv_query_device_ex(3), ibv_query_port(3), ibv_query_port_speed(3), ibv_query_pkey(3),
// ibv_query_rt_values_ex(3).
#include "plugins/verbs/door.h"
#include "plugins/verbs/symver.h"
#include "wire/aeth.h"

#include <arpa/inet.h>
#include <limits.h>
#include <time.h>

// PortPhysicalState of the InfiniBand specification's PortInfo.
#define PHYS_STATE_DISABLED 3
#define PHYS_STATE_LINK_UP  5

// 4 lanes of 10 Gbit/s: about what UDP with segmentation offload carries between two processes of one host. Programs
// estimate costs from it.
#define PORT_WIDTH          2   // 4 lanes
#define PORT_SPEED          8   // 10 Gbit/s each (FDR10)
#define PORT_SPEED_EXPLICIT 400 // both, in units of 100 Mbit/s

static int bounded(uint32_t value)
{
    return value > INT_MAX ? INT_MAX : (int)value;
}

static void fill_identity(struct ibv_context *context, struct ibv_device_attr *attr)
{
    strcpy(attr->fw_ver, ALB_DOOR_VERSION);
    attr->node_guid = alb_door_device_guid(context->device);
    attr->sys_image_guid = attr->node_guid;
    attr->vendor_id = ALB_DOOR_VENDOR;
    attr->vendor_part_id = alb_door_part_id(context->device);
    attr->hw_ver = 0;
    attr->phys_port_cnt = 1;
}

static void fill_limits(struct ibv_context *context, struct ibv_device_attr *attr)
{
    const struct alb_engine_config *limits = alb_door_context(context)->limits;
    attr->max_mr_size = INT64_MAX;    // more than processes have addresses; a number of JSON, too (`albedo info`)
    attr->page_size_cap = 0xfffff000; // memory is used where it is, in any pages
    attr->max_qp = bounded(limits->qp_max - ALB_QPN_RESERVED);
    attr->max_qp_wr = bounded(ALB_MIN(limits->send_wr_max, limits->recv_wr_max));
    attr->max_sge = bounded(limits->sge_max);
    attr->max_sge_rd = bounded(limits->sge_max);
    attr->max_cq = bounded(limits->cq_max);
    attr->max_cqe = bounded(limits->cqe_max);
    attr->max_mr = bounded(limits->region_max); // regions and windows share one table: each may have all of it
    attr->max_mw = bounded(limits->region_max);
    attr->max_pd = bounded(limits->pd_max);
    attr->max_qp_rd_atom = bounded(limits->rd_atomic_max);
    attr->max_qp_init_rd_atom = bounded(limits->rd_atomic_max);
    attr->max_res_rd_atom = bounded(limits->rd_atomic_max * limits->qp_max);
    attr->max_mcast_grp = bounded(limits->group_max);
    attr->max_mcast_qp_attach = bounded(limits->group_qp_max);
    attr->max_total_mcast_qp_attach = bounded(limits->group_max * limits->group_qp_max);
    attr->max_ah = bounded(limits->ah_max);
    attr->max_srq = bounded(limits->srq_max);
    attr->max_srq_wr = bounded(limits->srq_wr_max);
    attr->max_srq_sge = bounded(limits->sge_max);
    attr->max_pkeys = 1;
    attr->local_ca_ack_delay = 15; // 4.096 us * 2^15: a peer that is off its processor answers late
}

// IB_UVERBS_DEVICE_ATOMIC_WRITE of <rdma/ib_user_verbs.h>, which an older one has not.
#define ATOMIC_WRITE_CAP (UINT64_C(1) << 40)

static void fill_capabilities(struct ibv_device_attr *attr)
{
    // The engine uses the processor's own atomic instructions, which IBV_ATOMIC_GLOB would say. But programs (UCX 1.13)
    // compare for equality with what devices commonly say, and do without atomics if it is anything else.
    attr->atomic_cap = IBV_ATOMIC_HCA;
    attr->device_cap_flags = IBV_DEVICE_CURR_QP_STATE_MOD | IBV_DEVICE_SYS_IMAGE_GUID | IBV_DEVICE_RC_RNR_NAK_GEN |
                             IBV_DEVICE_SRQ_RESIZE | IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_WINDOW_TYPE_2B |
                             IBV_DEVICE_MEM_MGT_EXTENSIONS | IBV_DEVICE_XRC | IBV_DEVICE_PORT_ACTIVE_EVENT;
}

static void fill_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
    *attr = (struct ibv_device_attr){0};
    fill_identity(context, attr);
    fill_limits(context, attr);
    fill_capabilities(attr);
}

int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
    if (!context || !attr)
        return alb_door_refuse(EINVAL);
    fill_device(context, attr);
    return 0;
}

// attr_size is the caller's idea of the structure: it may be older or newer than ours.
static int query_device_ex(struct ibv_context *context, const struct ibv_query_device_ex_input *input,
                           struct ibv_device_attr_ex *attr, size_t attr_size)
{
    struct ibv_device_attr_ex all = {0};
    if (!attr || attr_size < sizeof(attr->orig_attr) || (input && input->comp_mask))
        return alb_door_refuse(EINVAL);
    fill_device(context, &all.orig_attr);
    all.completion_timestamp_mask = UINT64_MAX;
    all.hca_core_clock = 1000 * 1000; // kHz: timestamps count nanoseconds
    all.device_cap_flags_ex = all.orig_attr.device_cap_flags | ATOMIC_WRITE_CAP;
    all.phys_port_cnt_ex = 1;
    memset(attr, 0, attr_size);
    memcpy(attr, &all, ALB_MIN(attr_size, sizeof(all)));
    return 0;
}

static void fill_port(struct alb_door_context *context, struct ibv_port_attr *attr)
{
    enum ibv_mtu mtu = (enum ibv_mtu)alb_mtu_code(alb_device_mtu_bytes(context->device));
    bool is_up = alb_device_is_up(context->device);
    *attr = (struct ibv_port_attr){
        .state = is_up ? IBV_PORT_ACTIVE : IBV_PORT_DOWN,
        .max_mtu = IBV_MTU_4096,
        .active_mtu = mtu,
        .gid_tbl_len = ALB_DOOR_GIDS,
        .port_cap_flags = IBV_PORT_CM_SUP | IBV_PORT_IP_BASED_GIDS,
        .max_msg_sz = ALB_MAX_MESSAGE,
        .pkey_tbl_len = 1,
        .max_vl_num = 1,
        .active_width = PORT_WIDTH,
        .active_speed = PORT_SPEED,
        .phys_state = is_up ? PHYS_STATE_LINK_UP : PHYS_STATE_DISABLED,
        .link_layer = IBV_LINK_LAYER_ETHERNET,
        .flags = IBV_QPF_GRH_REQUIRED,
    };
}

static int query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr, size_t attr_size)
{
    struct ibv_port_attr all;
    if (!attr || port != ALB_DOOR_PORT)
        return alb_door_refuse(EINVAL);
    fill_port(alb_door_context(context), &all);
    memset(attr, 0, attr_size);
    memcpy(attr, &all, ALB_MIN(attr_size, sizeof(all)));
    return 0;
}

// The structure as it was before port_cap_flags2 was appended: the real symbol is called by programs of that time and
// must not write beyond.
int ibv_query_port(struct ibv_context *context, uint8_t port, struct _compat_ibv_port_attr *attr)
{
    const size_t compat_size = offsetof(struct ibv_port_attr, port_cap_flags2);
    if (!context)
        return alb_door_refuse(EINVAL);
    return query_port(context, port, (struct ibv_port_attr *)attr, compat_size);
}

// Of releases later than the <infiniband/verbs.h> that this may be built with.
int alb_query_port_speed(struct ibv_context *context, uint32_t port, uint64_t *speed);

// NCCL asks here first, and warns of an answer that is none.
int alb_query_port_speed(struct ibv_context *context, uint32_t port, uint64_t *speed)
{
    if (!context || !speed || port != ALB_DOOR_PORT)
        return alb_door_refuse(EINVAL);
    *speed = PORT_SPEED_EXPLICIT;
    return 0;
}
ALB_SYMVER_DEFAULT(alb_query_port_speed, ibv_query_port_speed, "IBVERBS_1.16");

int ibv_query_pkey(struct ibv_context *context, uint8_t port, int index, __be16 *pkey)
{
    if (!context || !pkey || port != ALB_DOOR_PORT || index != 0) {
        errno = EINVAL;
        return -1;
    }
    *pkey = htons(ALB_DOOR_PKEY);
    return 0;
}

int ibv_get_pkey_index(struct ibv_context *context, uint8_t port, __be16 pkey)
{
    if (!context || port != ALB_DOOR_PORT || pkey != htons(ALB_DOOR_PKEY)) {
        errno = EINVAL;
        return -1;
    }
    return 0;
}

// The clock of completion timestamps.
static int query_rt_values(struct ibv_context *context, struct ibv_values_ex *values)
{
    (void)context;
    if (!values || values->comp_mask & ~(uint32_t)IBV_VALUES_MASK_RAW_CLOCK)
        return alb_door_refuse(EINVAL);
    if (values->comp_mask & IBV_VALUES_MASK_RAW_CLOCK)
        clock_gettime(CLOCK_MONOTONIC, &values->raw_clock);
    return 0;
}

void alb_door_fill_query(struct verbs_context *verbs)
{
    verbs->context.ops._compat_query_device = ibv_query_device;
    verbs->context.ops._compat_query_port = ibv_query_port;
    verbs->query_device_ex = query_device_ex;
    verbs->query_port = query_port;
    verbs->query_rt_values = query_rt_values;
}
