// SPDX-License-Identifier: BSD-2-Clause
// Verbs that exist as symbols and that this device has not. What stands in the context's tables only (flow steering,
// counters, device memory, work queues, tag matching, null regions, advice, moderation) is refused by a NULL slot.
// docs/CONFORMANCE.md gives the reasons.
#include "plugins/verbs/door.h"

// Objects are not shared between processes: the device lives in one.
struct ibv_context *ibv_import_device(int cmd_fd)
{
    (void)cmd_fd;
    return alb_door_fail(EOPNOTSUPP);
}

struct ibv_pd *ibv_import_pd(struct ibv_context *context, uint32_t pd_handle)
{
    (void)context;
    (void)pd_handle;
    return alb_door_fail(EOPNOTSUPP);
}

struct ibv_mr *ibv_import_mr(struct ibv_pd *pd, uint32_t mr_handle)
{
    (void)pd;
    (void)mr_handle;
    return alb_door_fail(EOPNOTSUPP);
}

struct ibv_dm *ibv_import_dm(struct ibv_context *context, uint32_t dm_handle)
{
    (void)context;
    (void)dm_handle;
    return alb_door_fail(EOPNOTSUPP);
}

// Nothing was imported, so there is nothing to give back.
void ibv_unimport_pd(struct ibv_pd *pd)
{
    (void)pd;
}

void ibv_unimport_mr(struct ibv_mr *mr)
{
    (void)mr;
}

void ibv_unimport_dm(struct ibv_dm *dm)
{
    (void)dm;
}

// A processor cannot read a device's buffer without mapping it, and not every exporter lets itself be mapped.
struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova, int fd, int access)
{
    (void)pd;
    (void)offset;
    (void)length;
    (void)iova;
    (void)fd;
    (void)access;
    return alb_door_fail(EOPNOTSUPP);
}

// Enhanced connection establishment negotiates vendors' extensions; there are none.
int ibv_query_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
    return alb_door_refuse(qp && ece ? EOPNOTSUPP : EINVAL);
}

int ibv_set_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
    return alb_door_refuse(qp && ece ? EOPNOTSUPP : EINVAL);
}

// 0: a reader may not poll inside a message. Its last bytes come last, but the order within a segment is memcpy's.
int ibv_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode op, uint32_t flags)
{
    (void)qp;
    (void)op;
    (void)flags;
    return 0;
}

// There are no Ethernet addresses above a UDP socket.
int ibv_resolve_eth_l2_from_gid(struct ibv_context *context, struct ibv_ah_attr *attr, uint8_t mac[ETHERNET_LL_SIZE],
                                uint16_t *vid)
{
    (void)context;
    (void)attr;
    (void)mac;
    (void)vid;
    return -alb_door_refuse(EOPNOTSUPP);
}
