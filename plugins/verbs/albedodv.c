// SPDX-License-Identifier: BSD-2-Clause
// libalbedodv.so.1: finds Albedo's libibverbs.so.1 in the process, if it is the one, and calls it through the bridge.
// It links nothing of Albedo, so that a program that uses it runs anywhere.
#include "albedo/albedodv.h"

#include "engine/verbs.h"

#include <dlfcn.h>
#include <errno.h>

typedef int expect_call(struct ibv_qp *qp, const struct alb_expectation *expectation);

static expect_call *find_expect(void)
{
    union {
        void *object;
        expect_call *call;
    } found = {.object = dlvsym(RTLD_DEFAULT, "albedo_bridge_expect", "ALBEDO_PRIVATE")};
    return found.call;
}

int albdv_is_supported(void)
{
    return find_expect() != NULL;
}

int albdv_expect(struct ibv_qp *qp, const struct albdv_expectation *expectation)
{
    expect_call *expect = find_expect();
    if (!qp || !expectation)
        return EINVAL;
    if (!expect)
        return EOPNOTSUPP;
    const struct alb_expectation announced = {
        .bytes = expectation->bytes,
        .messages = expectation->messages,
        .group = expectation->group,
        .step = expectation->step,
        .steps = expectation->steps,
    };
    return expect(qp, &announced);
}
