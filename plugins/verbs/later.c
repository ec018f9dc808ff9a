// SPDX-License-Identifier: BSD-2-Clause
// Public names of rdma-core releases later than the <infiniband/verbs.h> that this may be built with: a program that
// was linked against one starts, and is refused what it asks for. (DMA handles and registration through them,
// completion counters.)
#include "plugins/verbs/symver.h"

#include <errno.h>
#include <stddef.h>

int alb_later_refuse(void);
int alb_later_refuse_descriptor(void);
void *alb_later_refuse_pointer(void);

int alb_later_refuse(void)
{
    errno = EOPNOTSUPP;
    return EOPNOTSUPP;
}

// For ibv_dm_export_dmabuf_fd(3), which returns a descriptor or -1.
int alb_later_refuse_descriptor(void)
{
    errno = EOPNOTSUPP;
    return -1;
}

void *alb_later_refuse_pointer(void)
{
    errno = EOPNOTSUPP;
    return NULL;
}

ALB_SYMVER_DEFAULT(alb_later_refuse_pointer, ibv_alloc_dmah, "IBVERBS_1.15");
ALB_SYMVER_DEFAULT(alb_later_refuse, ibv_dealloc_dmah, "IBVERBS_1.15");
ALB_SYMVER_DEFAULT(alb_later_refuse_pointer, ibv_reg_mr_ex, "IBVERBS_1.15");
ALB_SYMVER_DEFAULT(alb_later_refuse_descriptor, ibv_dm_export_dmabuf_fd, "IBVERBS_1.16");
ALB_SYMVER_DEFAULT(alb_later_refuse, _ibv_query_comp_cntr_caps, "IBVERBS_1.18");
ALB_SYMVER_DEFAULT(alb_later_refuse_pointer, ibv_create_comp_cntr, "IBVERBS_1.18");
ALB_SYMVER_DEFAULT(alb_later_refuse, ibv_destroy_comp_cntr, "IBVERBS_1.18");
ALB_SYMVER_DEFAULT(alb_later_refuse, ibv_inc_comp_cntr, "IBVERBS_1.18");
ALB_SYMVER_DEFAULT(alb_later_refuse, ibv_inc_err_comp_cntr, "IBVERBS_1.18");
ALB_SYMVER_DEFAULT(alb_later_refuse, ibv_qp_attach_comp_cntr, "IBVERBS_1.18");
ALB_SYMVER_DEFAULT(alb_later_refuse, ibv_read_comp_cntr, "IBVERBS_1.18");
ALB_SYMVER_DEFAULT(alb_later_refuse, ibv_read_err_comp_cntr, "IBVERBS_1.18");
ALB_SYMVER_DEFAULT(alb_later_refuse, ibv_set_comp_cntr, "IBVERBS_1.18");
ALB_SYMVER_DEFAULT(alb_later_refuse, ibv_set_err_comp_cntr, "IBVERBS_1.18");
