// SPDX-License-Identifier: BSD-2-Clause
#include "engine/stats.h"

#include "base/tests/test.h"

#include <string.h>

static void stat_name__each_has_its_own(void **state)
{
    assert_string_equal(alb_stat_name(ALB_STAT_sent_pkts), "sent_pkts");
    assert_string_equal(alb_stat_text(ALB_STAT_sent_pkts), "packets sent");
    for (int i = 0; i < ALB_STAT_COUNT; i++) {
        assert_true(strlen(alb_stat_text(i)) > 0);
        for (int k = 0; k < i; k++)
            assert_string_not_equal(alb_stat_name(i), alb_stat_name(k));
    }
    assert_string_equal(alb_stat_name(ALB_STAT_COUNT), "invalid");
    assert_string_equal(alb_stat_text(ALB_STAT_COUNT), "invalid");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stat_name__each_has_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
