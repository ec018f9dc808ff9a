// SPDX-License-Identifier: BSD-2-Clause
// What a program announces reaches the engine of albedo0, and is refused elsewhere. (What it is good for is tested in
// virtual time: engine/tests/csa_expect_test.c, sim/tests/csa_expect_test.c.)
#include "albedo/albedodv.h"

#include "fixture.h"

#include <stdlib.h>

static void is_supported__here(void **state)
{
    assert_true(albdv_is_supported());
}

static void expect__nonsense(void **state)
{
    struct fixture *f = *state;
    const struct albdv_expectation one = {.messages = 1};
    struct ibv_qp *qp = fixture_qp(f, IBV_QPT_RC);
    assert_int_equal(albdv_expect(NULL, &one), EINVAL);
    assert_int_equal(albdv_expect(qp, NULL), EINVAL);
    assert_int_equal(ibv_destroy_qp(qp), 0);
}

static void expect__messages(void **state)
{
    struct fixture *f = *state;
    const struct albdv_expectation two = {.messages = 2, .bytes = 200}, none = {0};
    const struct albdv_expectation step = {.messages = 1, .group = 7, .step = 1, .steps = 2};
    const struct albdv_expectation no_step = {.messages = 1, .group = 7, .step = 3, .steps = 2};
    struct ibv_qp *a = fixture_qp(f, IBV_QPT_RC), *b = fixture_qp(f, IBV_QPT_RC);
    assert_int_equal(albdv_expect(b, &two), EINVAL); // in RESET
    fixture_connect(a, b);
    assert_int_equal(albdv_expect(b, &two), 0);
    for (uint64_t i = 0; i < 2; i++) {
        fixture_post_recv(f, b, i, 0, 100);
        fixture_post_send(f, a, 10 + i, 1000, 100);
        assert_int_equal(fixture_wait_for(f->cq, i).status, IBV_WC_SUCCESS);
    }
    assert_int_equal(albdv_expect(b, &step), 0);
    assert_int_equal(albdv_expect(b, &no_step), EINVAL);
    assert_int_equal(albdv_expect(b, &none), 0);
    assert_int_equal(ibv_destroy_qp(a), 0);
    assert_int_equal(ibv_destroy_qp(b), 0);
}

static void expect__not_of_datagrams(void **state)
{
    struct fixture *f = *state;
    const struct albdv_expectation one = {.messages = 1};
    struct ibv_qp *qp = fixture_qp(f, IBV_QPT_UD);
    assert_int_equal(albdv_expect(qp, &one), EOPNOTSUPP);
    assert_int_equal(ibv_destroy_qp(qp), 0);
}

static void expect__not_of_roce0(void **state)
{
    struct fixture *f = *state;
    const struct albdv_expectation one = {.messages = 1};
    struct ibv_qp *a = fixture_qp(f, IBV_QPT_RC), *b = fixture_qp(f, IBV_QPT_RC);
    fixture_connect(a, b);
    assert_int_equal(albdv_expect(b, &one), EOPNOTSUPP);
    assert_int_equal(ibv_destroy_qp(a), 0);
    assert_int_equal(ibv_destroy_qp(b), 0);
}

int main(void)
{
    const struct CMUnitTest albedo_tests[] = {
        cmocka_unit_test(is_supported__here),
        FIXTURE_TEST(expect__nonsense),
        FIXTURE_TEST(expect__messages),
        FIXTURE_TEST(expect__not_of_datagrams),
    };
    const struct CMUnitTest roce_tests[] = {
        FIXTURE_TEST(expect__not_of_roce0),
        FIXTURE_TEST(expect__not_of_datagrams),
    };
    setenv("ALBEDO_DEVICES", "albedo0", 1);
    int failed = cmocka_run_group_tests_name("albedodv albedo0", albedo_tests, NULL, NULL);
    setenv("ALBEDO_DEVICES", "roce0", 1);
    return failed + cmocka_run_group_tests_name("albedodv roce0", roce_tests, NULL, NULL);
}
