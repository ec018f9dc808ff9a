// SPDX-License-Identifier: BSD-2-Clause
// The engine's enumerators have the values of <infiniband/verbs.h>, and its scatter/gather entry its layout: the door
// hands them on without looking. This file has no code; it fails to compile when that is not so.
#include "plugins/verbs/door.h"

#define SAME(name) _Static_assert((int)ALB_##name == (int)IBV_##name, #name)

SAME(ACCESS_LOCAL_WRITE);
SAME(ACCESS_REMOTE_WRITE);
SAME(ACCESS_REMOTE_READ);
SAME(ACCESS_REMOTE_ATOMIC);
SAME(ACCESS_MW_BIND);
SAME(ACCESS_ZERO_BASED);
SAME(ACCESS_RELAXED_ORDERING);
SAME(MW_TYPE_1);
SAME(MW_TYPE_2);

SAME(WC_SUCCESS);
SAME(WC_LOC_LEN_ERR);
SAME(WC_LOC_QP_OP_ERR);
SAME(WC_LOC_PROT_ERR);
SAME(WC_WR_FLUSH_ERR);
SAME(WC_MW_BIND_ERR);
SAME(WC_BAD_RESP_ERR);
SAME(WC_LOC_ACCESS_ERR);
SAME(WC_REM_INV_REQ_ERR);
SAME(WC_REM_ACCESS_ERR);
SAME(WC_REM_OP_ERR);
SAME(WC_RETRY_EXC_ERR);
SAME(WC_RNR_RETRY_EXC_ERR);
SAME(WC_REM_ABORT_ERR);
SAME(WC_FATAL_ERR);
SAME(WC_RESP_TIMEOUT_ERR);
SAME(WC_GENERAL_ERR);

SAME(WC_SEND);
SAME(WC_RDMA_WRITE);
SAME(WC_RDMA_READ);
SAME(WC_COMP_SWAP);
SAME(WC_FETCH_ADD);
SAME(WC_BIND_MW);
SAME(WC_LOCAL_INV);
SAME(WC_ATOMIC_WRITE);
SAME(WC_RECV);
SAME(WC_RECV_RDMA_WITH_IMM);
SAME(WC_GRH);
SAME(WC_WITH_IMM);
SAME(WC_WITH_INV);

SAME(QPT_RC);
SAME(QPT_UC);
SAME(QPT_UD);
SAME(QPS_RESET);
SAME(QPS_INIT);
SAME(QPS_RTR);
SAME(QPS_RTS);
SAME(QPS_SQD);
SAME(QPS_SQE);
SAME(QPS_ERR);

SAME(QP_STATE);
SAME(QP_CUR_STATE);
SAME(QP_EN_SQD_ASYNC_NOTIFY);
SAME(QP_ACCESS_FLAGS);
SAME(QP_PKEY_INDEX);
SAME(QP_PORT);
SAME(QP_QKEY);
SAME(QP_AV);
SAME(QP_PATH_MTU);
SAME(QP_TIMEOUT);
SAME(QP_RETRY_CNT);
SAME(QP_RNR_RETRY);
SAME(QP_RQ_PSN);
SAME(QP_MAX_QP_RD_ATOMIC);
SAME(QP_ALT_PATH);
SAME(QP_MIN_RNR_TIMER);
SAME(QP_SQ_PSN);
SAME(QP_MAX_DEST_RD_ATOMIC);
SAME(QP_PATH_MIG_STATE);
SAME(QP_CAP);
SAME(QP_DEST_QPN);
SAME(QP_RATE_LIMIT);

SAME(WR_RDMA_WRITE);
SAME(WR_RDMA_WRITE_WITH_IMM);
SAME(WR_SEND);
SAME(WR_SEND_WITH_IMM);
SAME(WR_RDMA_READ);
SAME(WR_ATOMIC_CMP_AND_SWP);
SAME(WR_ATOMIC_FETCH_AND_ADD);
SAME(WR_LOCAL_INV);
SAME(WR_BIND_MW);
SAME(WR_SEND_WITH_INV);
SAME(WR_ATOMIC_WRITE);
SAME(SEND_FENCE);
SAME(SEND_SIGNALED);
SAME(SEND_SOLICITED);
SAME(SEND_INLINE);

_Static_assert(sizeof(struct alb_sge) == sizeof(struct ibv_sge), "struct ibv_sge");
_Static_assert(offsetof(struct alb_sge, addr) == offsetof(struct ibv_sge, addr), "ibv_sge.addr");
_Static_assert(offsetof(struct alb_sge, length) == offsetof(struct ibv_sge, length), "ibv_sge.length");
_Static_assert(offsetof(struct alb_sge, lkey) == offsetof(struct ibv_sge, lkey), "ibv_sge.lkey");

// Programs hold the last member; slots of verbs_context are found by their distance from its end.
_Static_assert(offsetof(struct verbs_context, context) + sizeof(struct ibv_context) == sizeof(struct verbs_context),
               "struct ibv_context must end struct verbs_context");
