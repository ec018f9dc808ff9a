// SPDX-License-Identifier: BSD-2-Clause
// Whether memory that copies go to is there.
#include "tools/files_memory.h"

#include "base/tests/test.h"

#include "tools/free_memory.h"

#include <string.h>

#define GIB (1ull << 30)

uint64_t free_memory_bytes(void)
{
    return 3 * GIB;
}

static void files_memory_is_free__no_more_than_there_is(void **state)
{
    char why[FILES_WHY_MAX];
    assert_true(files_memory_is_free(3 * GIB, why));
    assert_false(files_memory_is_free(8 * GIB, why));
    assert_non_null(strstr(why, "--memory: 8.0 GiB in all, and 3.0 GiB are free"));
}

static void files_memory__is_mixed_until_a_copy_as_long_is_complete(void **state)
{
    struct files_memory memory = {0};
    files_memory_note_begun(&memory, 1000);
    files_memory_note_complete(&memory, 1000);
    assert_int_equal(memory.mixed_bytes, 0);
    files_memory_note_begun(&memory, 2000); // and is not completed
    files_memory_note_begun(&memory, 5);
    files_memory_note_complete(&memory, 5);
    assert_int_equal(memory.mixed_bytes, 2000);
    files_memory_note_begun(&memory, 2000);
    files_memory_note_complete(&memory, 2000);
    assert_int_equal(memory.mixed_bytes, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_memory_is_free__no_more_than_there_is),
        cmocka_unit_test(files_memory__is_mixed_until_a_copy_as_long_is_complete),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
