// SPDX-License-Identifier: BSD-2-Clause
// Order, membership and removal while iterating.
#include "base/list.h"
#include "base/tests/test.h"

struct item {
    int number;
    struct alb_list link;
};

struct fixture {
    struct alb_list head;
    struct item items[5];
};

static void setup(struct fixture *f)
{
    alb_list_init(&f->head);
    for (int i = 0; i < 5; i++) {
        f->items[i].number = i;
        alb_list_init(&f->items[i].link);
    }
}

// The list as a decimal number: items 1, 2, 3 give 123 (an item 0 cannot stand first).
static int digits(const struct alb_list *head)
{
    int value = 0;
    ALB_LIST_FOR_EACH (head, node)
        value = value * 10 + ALB_LIST_ENTRY(node, struct item, link)->number;
    return value;
}

static void alb_list_push__both_ends(void **state)
{
    struct fixture f;
    setup(&f);
    assert_true(alb_list_is_empty(&f.head));
    assert_false(alb_list_is_linked(&f.items[1].link));
    alb_list_push_back(&f.head, &f.items[2].link);
    alb_list_push_back(&f.head, &f.items[3].link);
    alb_list_push_front(&f.head, &f.items[1].link);
    assert_false(alb_list_is_empty(&f.head));
    assert_true(alb_list_is_linked(&f.items[1].link));
    assert_int_equal(digits(&f.head), 123);
}

static void alb_list_remove__middle_and_twice(void **state)
{
    struct fixture f;
    setup(&f);
    for (int i = 1; i < 5; i++)
        alb_list_push_back(&f.head, &f.items[i].link);
    alb_list_remove(&f.items[3].link);
    alb_list_remove(&f.items[3].link);
    assert_false(alb_list_is_linked(&f.items[3].link));
    assert_int_equal(digits(&f.head), 124);
    alb_list_push_front(&f.head, &f.items[3].link);
    assert_int_equal(digits(&f.head), 3124);
}

static void alb_list_pop__in_order_then_null(void **state)
{
    struct fixture f;
    setup(&f);
    alb_list_push_back(&f.head, &f.items[1].link);
    alb_list_push_back(&f.head, &f.items[2].link);
    assert_ptr_equal(alb_list_pop(&f.head), &f.items[1].link);
    assert_false(alb_list_is_linked(&f.items[1].link));
    assert_ptr_equal(alb_list_pop(&f.head), &f.items[2].link);
    assert_null(alb_list_pop(&f.head));
    assert_true(alb_list_is_empty(&f.head));
}

static void alb_list_for_each__current_may_go(void **state)
{
    struct fixture f;
    setup(&f);
    for (int i = 1; i < 5; i++)
        alb_list_push_back(&f.head, &f.items[i].link);
    int seen = 0;
    ALB_LIST_FOR_EACH (&f.head, node) {
        seen = seen * 10 + ALB_LIST_ENTRY(node, struct item, link)->number;
        if (ALB_LIST_ENTRY(node, struct item, link)->number % 2 == 0)
            alb_list_remove(node);
    }
    assert_int_equal(seen, 1234);
    assert_int_equal(digits(&f.head), 13);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alb_list_push__both_ends),
        cmocka_unit_test(alb_list_remove__middle_and_twice),
        cmocka_unit_test(alb_list_pop__in_order_then_null),
        cmocka_unit_test(alb_list_for_each__current_may_go),
    };
    return cmocka_run_group_tests_name("list", tests, NULL, NULL);
}
