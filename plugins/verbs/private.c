// SPDX-License-Identifier: BSD-2-Clause
// The private version nodes: names that must exist although nothing calls them in earnest, and the few that have
// something to say.
#include "base/types.h"
#include "plugins/verbs/private_names.h"
#include "plugins/verbs/symver.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <stdbool.h>

// They are reached only through the versioned names below, by callers that know the real signatures; arguments are not
// looked at.
int alb_private_refuse(void);
void *alb_private_refuse_pointer(void);
void alb_private_quiet(void);
int alb_private_read_ibdev_sysfs_file(void);
const char *alb_private_wr_opcode_str(enum ibv_wr_opcode opcode);
int alb_private_query_gid_type(struct ibv_context *context, uint8_t port, unsigned int index, int *type);

int alb_private_refuse(void)
{
    return EOPNOTSUPP;
}

void *alb_private_refuse_pointer(void)
{
    errno = EOPNOTSUPP;
    return NULL;
}

void alb_private_quiet(void)
{
}

// There is no sysfs directory of this device: as when the file does not exist.
int alb_private_read_ibdev_sysfs_file(void)
{
    errno = ENOENT;
    return -1;
}

// The words of rdma-core. Of a number that it has none for, too, something that can be printed.
const char *alb_private_wr_opcode_str(enum ibv_wr_opcode opcode)
{
    enum { FLUSH = 14 }; // IBV_WR_FLUSH, which an older <infiniband/verbs.h> has not
    static const char *const words[] = {
        [IBV_WR_RDMA_WRITE] = "rdma-write",
        [IBV_WR_RDMA_WRITE_WITH_IMM] = "rdma-write-with-imm",
        [IBV_WR_SEND] = "send",
        [IBV_WR_SEND_WITH_IMM] = "send-with-imm",
        [IBV_WR_RDMA_READ] = "rdma-read",
        [IBV_WR_ATOMIC_CMP_AND_SWP] = "atomic-cmp-and-swp",
        [IBV_WR_ATOMIC_FETCH_AND_ADD] = "atomic-fetch-and-add",
        [IBV_WR_LOCAL_INV] = "local-inv",
        [IBV_WR_BIND_MW] = "bind-mw",
        [IBV_WR_SEND_WITH_INV] = "send-with-inv",
        [IBV_WR_TSO] = "tso",
        [IBV_WR_DRIVER1] = "driver1",
        [FLUSH] = "flush",
        [IBV_WR_ATOMIC_WRITE] = "atomic-write",
    };
    return (unsigned)opcode < ALB_COUNT(words) && words[opcode] ? words[opcode] : "unknown";
}

// What ibv_devinfo asks: 1 for RoCEv2, 0 for an entry without a GID (the values of sysfs, not of enum ibv_gid_type).
int alb_private_query_gid_type(struct ibv_context *context, uint8_t port, unsigned int index, int *type)
{
    struct ibv_gid_entry entry;
    int error = ibv_query_gid_ex(context, port, index, &entry, 0);
    if (error && error != ENODATA) {
        errno = error;
        return -1;
    }
    *type = error == 0 && entry.gid_type == IBV_GID_TYPE_ROCE_V2;
    return 0;
}

// A variable that providers set while they are loaded.
bool alb_private_allow_disassociate_destroy;

#define REFUSE(name)         ALB_SYMVER_PRIVATE(alb_private_refuse, name);
#define REFUSE_POINTER(name) ALB_SYMVER_PRIVATE(alb_private_refuse_pointer, name);
#define QUIET(name)          ALB_SYMVER_PRIVATE(alb_private_quiet, name);

ALB_PRIVATE_REFUSING(REFUSE)
ALB_PRIVATE_REFUSING_POINTER(REFUSE_POINTER)
ALB_PRIVATE_QUIET(QUIET)
ALB_SYMVER_PRIVATE(alb_private_query_gid_type, ibv_query_gid_type);
ALB_SYMVER_PRIVATE(alb_private_read_ibdev_sysfs_file, ibv_read_ibdev_sysfs_file);
ALB_SYMVER_PRIVATE(alb_private_wr_opcode_str, ibv_wr_opcode_str);
ALB_SYMVER_PRIVATE(alb_private_allow_disassociate_destroy, verbs_allow_disassociate_destroy);

// The registration call carries the number of its node.
ALB_SYMVER_DEFAULT(alb_private_quiet, verbs_register_driver_34, "IBVERBS_PRIVATE_34");
ALB_SYMVER(alb_private_quiet, verbs_register_driver_57, "IBVERBS_PRIVATE_57");
ALB_SYMVER(alb_private_quiet, verbs_register_driver_59, "IBVERBS_PRIVATE_59");
ALB_SYMVER(alb_private_quiet, verbs_register_driver_64, "IBVERBS_PRIVATE_64");
ALB_SYMVER(alb_private_quiet, verbs_register_driver_65, "IBVERBS_PRIVATE_65");
ALB_SYMVER(alb_private_quiet, ibv_register_driver, "IBVERBS_1.1");
