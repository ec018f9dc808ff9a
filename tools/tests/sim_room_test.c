// SPDX-License-Identifier: BSD-2-Clause
// Whether a cluster fits into memory.
#include "base/tests/test.h"
#include "tools/sim.h"

#include <stdlib.h>
#include <string.h>

static void sim_has_room__goes_by_what_the_last_half_of_the_hosts_took(void **state)
{
    const size_t bytes = (size_t)256 << 18; // 256 KiB each
    char why[100] = "";
    assert_true(sim_has_room("hosts", 0, UINT32_MAX, why, sizeof(why)));
    assert_true(sim_has_room("hosts", 256, UINT32_MAX, why, sizeof(why))); // too early to tell
    uint8_t *memory = malloc(bytes);
    assert_non_null(memory);
    memset(memory, 1, bytes);
    assert_false(sim_has_room("hosts", 512, UINT32_MAX, why, sizeof(why)));
    assert_non_null(strstr(why, "4294967295 hosts take "));
    assert_non_null(strstr(why, " GiB of memory or more, and there are "));
    assert_true(sim_has_room("hosts", 1024, 2048, why, sizeof(why))); // took nothing to speak of
    free(memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sim_has_room__goes_by_what_the_last_half_of_the_hosts_took),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
