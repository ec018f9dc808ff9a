// SPDX-License-Identifier: BSD-2-Clause
// The names of IBVERBS_1.0 that IBVERBS_1.1 replaced in 2007, with other structures. They exist so that the node is
// whole. A program that was linked against them finds no device, and so never reaches the others.
#include "plugins/verbs/symver.h"

#include <errno.h>
#include <stdlib.h>

void **alb_compat_get_device_list(int *count);
void alb_compat_free_device_list(void **list);
void *alb_compat_refuse_pointer(void);
int alb_compat_refuse(void);
void alb_compat_quiet(void);

void **alb_compat_get_device_list(int *count)
{
    if (count)
        *count = 0;
    return calloc(1, sizeof(void *));
}

void alb_compat_free_device_list(void **list)
{
    free(list);
}

void *alb_compat_refuse_pointer(void)
{
    errno = ENOSYS;
    return NULL;
}

int alb_compat_refuse(void)
{
    return ENOSYS;
}

void alb_compat_quiet(void)
{
}

ALB_SYMVER(alb_compat_get_device_list, ibv_get_device_list, "IBVERBS_1.0");
ALB_SYMVER(alb_compat_free_device_list, ibv_free_device_list, "IBVERBS_1.0");

ALB_SYMVER(alb_compat_quiet, ibv_ack_async_event, "IBVERBS_1.0");
ALB_SYMVER(alb_compat_quiet, ibv_ack_cq_events, "IBVERBS_1.0");

ALB_SYMVER(alb_compat_refuse_pointer, ibv_alloc_pd, "IBVERBS_1.0");
ALB_SYMVER(alb_compat_refuse_pointer, ibv_create_ah, "IBVERBS_1.0");
ALB_SYMVER(alb_compat_refuse_pointer, ibv_create_cq, "IBVERBS_1.0");
ALB_SYMVER(alb_compat_refuse_pointer, ibv_create_qp, "IBVERBS_1.0");
ALB_SYMVER(alb_compat_refuse_pointer, ibv_create_srq, "IBVERBS_1.0");
ALB_SYMVER(alb_compat_refuse_pointer, ibv_get_device_name, "IBVERBS_1.0");
ALB_SYMVER(alb_compat_refuse_pointer, ibv_get_device_guid, "IBVERBS_1.0");
ALB_SYMVER(alb_compat_refuse_pointer, ibv_open_device, "IBVERBS_1.0");
ALB_SYMVER(alb_compat_refuse_pointer, ibv_reg_mr, "IBVERBS_1.0");

ALB_SYMVER(alb_compat_refuse, ibv_attach_mcast, "IBVERBS_1.0");
ALB_SYMVER(alb_compat_refuse, ibv_close_device, "IBVERBS_1.0");
ALB_SYMVER(alb_compat_refuse, ibv_dealloc_pd, "IBVERBS_1.0");
ALB_SYMVER(alb_compat_refuse, ibv_dereg_mr, "IBVERBS_1.0");
ALB_SYMVER(alb_compat_refuse, ibv_destroy_ah, "IBVERBS_1.0");
ALB_SYMVER(alb_compat_refuse, ibv_destroy_cq, "IBVERBS_1.0");
ALB_SYMVER(alb_compat_refuse, ibv_destroy_qp, "IBVERBS_1.0");
ALB_SYMVER(alb_compat_refuse, ibv_destroy_srq, "IBVERBS_1.0");
ALB_SYMVER(alb_compat_refuse, ibv_detach_mcast, "IBVERBS_1.0");
ALB_SYMVER(alb_compat_refuse, ibv_get_async_event, "IBVERBS_1.0");
ALB_SYMVER(alb_compat_refuse, ibv_get_cq_event, "IBVERBS_1.0");
ALB_SYMVER(alb_compat_refuse, ibv_modify_qp, "IBVERBS_1.0");
ALB_SYMVER(alb_compat_refuse, ibv_modify_srq, "IBVERBS_1.0");
ALB_SYMVER(alb_compat_refuse, ibv_query_device, "IBVERBS_1.0");
ALB_SYMVER(alb_compat_refuse, ibv_query_gid, "IBVERBS_1.0");
ALB_SYMVER(alb_compat_refuse, ibv_query_pkey, "IBVERBS_1.0");
ALB_SYMVER(alb_compat_refuse, ibv_query_port, "IBVERBS_1.0");
ALB_SYMVER(alb_compat_refuse, ibv_query_qp, "IBVERBS_1.0");
ALB_SYMVER(alb_compat_refuse, ibv_query_srq, "IBVERBS_1.0");
ALB_SYMVER(alb_compat_refuse, ibv_resize_cq, "IBVERBS_1.0");
