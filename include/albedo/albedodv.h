/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What Albedo's devices can do beside verbs (albedodv(7)). Programs link libalbedodv, which is there with or without
 * Albedo's libibverbs.so.1: over another one its calls say EOPNOTSUPP.
 */
#pragma once

#include <infiniband/verbs.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Non-zero if the libibverbs.so.1 of this process is Albedo's, and so all of its devices are. */
int albdv_is_supported(void);

/* What is known to come to a queue pair by SEND or RDMA WRITE, besides what has come already. */
struct albdv_expectation {
    uint64_t bytes;    /* of payload; 0: not known */
    uint32_t messages; /* 0: not known */
    uint32_t group;    /* members of a group of queue pairs work in steps, together; 0: of none */
    uint32_t step;     /* which of how many; of no group: both 0 */
    uint32_t steps;
};

/*
 * Announces it, instead of what was announced before: a message is then missed and asked for even if every packet of it
 * is lost, and who holds back others of the group is asked first. It promises nothing and changes no completion. Bytes
 * and messages 0: nothing is expected any more.
 *
 * Returns 0 or an errno. EOPNOTSUPP: the device, its loss policy or the kind of queue pair has no use for it; EINVAL:
 * the queue pair cannot receive yet, or there is no such step; ENOMEM.
 */
int albdv_expect(struct ibv_qp *qp, const struct albdv_expectation *expectation);

#ifdef __cplusplus
}
#endif
