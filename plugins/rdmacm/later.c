// SPDX-License-Identifier: BSD-2-Clause
// Names of rdma-core releases later than the <rdma/rdma_cma.h> that this may be built with: a program that was linked
// against one starts, and is refused what it asks for. (Names resolved by a subnet's service records, events that a
// program writes.)
#include "plugins/rdmacm/door.h"

int alb_later_refuse(void);

int alb_later_refuse(void)
{
    return rdmacm_fail(EOPNOTSUPP);
}

#define LATER(name, node) __asm__(".symver alb_later_refuse, " #name "@@" node)

LATER(rdma_query_addrinfo, "RDMACM_1.4");
LATER(rdma_resolve_addrinfo, "RDMACM_1.4");
LATER(rdma_write_cm_event, "RDMACM_1.4");
