// SPDX-License-Identifier: BSD-2-Clause
#include "wire/drop.h"

#include "base/tests/test.h"

#include <string.h>

static void drop_name__is_there_and_unlike_the_others(void **state)
{
    for (int drop = 0; drop < ALB_DROP_COUNT; drop++) {
        const char *name = alb_drop_name((enum alb_drop)drop);
        assert_non_null(name);
        assert_true(strspn(name, "abcdefghijklmnopqrstuvwxyz_") == strlen(name));
        for (int other = 0; other < drop; other++)
            assert_string_not_equal(name, alb_drop_name((enum alb_drop)other));
    }
    assert_string_equal(alb_drop_name(ALB_DROP_BAD_ICRC), "bad_icrc");
    assert_string_equal(alb_drop_name(ALB_DROP_BAD_EPOCH), "bad_epoch");
    assert_string_equal(alb_drop_name(ALB_DROP_NOT_PROVEN), "not_proven");
    assert_string_equal(alb_drop_name(ALB_DROP_COUNT), "invalid");
}

static void drop_text__is_there_and_unlike_the_others(void **state)
{
    for (int drop = 0; drop < ALB_DROP_COUNT; drop++) {
        const char *text = alb_drop_text((enum alb_drop)drop);
        assert_non_null(text);
        for (int other = 0; other < drop; other++)
            assert_string_not_equal(text, alb_drop_text((enum alb_drop)other));
    }
    assert_string_equal(alb_drop_text(ALB_DROP_COUNT), "invalid");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(drop_name__is_there_and_unlike_the_others),
        cmocka_unit_test(drop_text__is_there_and_unlike_the_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
