// SPDX-License-Identifier: BSD-2-Clause
// When sizes are tried. What comes of it on real paths is tested over the virtual network (sim/tests/csa_mtu_test.c).
#include "engine/tests/csa_pair.h"

#include <stdlib.h>

#define MS ALB_NS_PER_MS

static struct alb_assoc_live *suspect(struct csa_pair *c)
{
    struct alb_assoc_live *live = alb_assoc_wake(c->engines[0], c->csa[0]->assoc);
    assert_non_null(live);
    alb_mtu_suspect(live, c->pair->now);
    return live;
}

// The PINGs themselves may be what is in the way of a segment, in a short queue.
static void suspect__not_again_at_once_when_the_size_has_worked(void **state)
{
    struct csa_pair *c = *state;
    assert_non_null(suspect(c)->mtu_search);
    pair_settle(c->pair);
    assert_null(csa_pair_live(c, 0)->mtu_search); // it works
    for (uint32_t i = 0; i < 10; i++) {
        pair_pass(c->pair, 90 * MS);
        assert_null(suspect(c)->mtu_search);
        pair_settle(c->pair);
    }
    pair_pass(c->pair, 2000 * MS);
    assert_non_null(suspect(c)->mtu_search);
    pair_settle(c->pair);
}

// A size that was given up is another matter.
static void suspect__at_once_when_the_size_is_another(void **state)
{
    struct csa_pair *c = *state;
    suspect(c);
    pair_settle(c->pair);
    alb_mtu_told(c->engines[0], c->csa[0]->assoc, 800);
    assert_non_null(suspect(c)->mtu_search);
    pair_settle(c->pair);
    assert_null(suspect(c)->mtu_search);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CSA_GREETED_TEST(suspect__not_again_at_once_when_the_size_has_worked),
        CSA_GREETED_TEST(suspect__at_once_when_the_size_is_another),
    };
    return cmocka_run_group_tests_name("csa_mtu", tests, NULL, NULL);
}
