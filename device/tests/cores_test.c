// SPDX-License-Identifier: BSD-2-Clause
// Counting runnable threads.
#include "device/cores.h"

#include "base/tests/test.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

// Two processors, and a file in place of /proc/loadavg.
static void open_cores(struct alb_cores *cores)
{
    alb_cores_init(cores);
    close(cores->loadavg_fd);
    cores->loadavg_fd = memfd_create("loadavg", MFD_CLOEXEC);
    cores->online = cores->usable = 2;
}

static void write_runnable(struct alb_cores *cores, uint32_t runnable)
{
    char text[32];
    int length = snprintf(text, sizeof(text), "0.00 0.00 0.00 %u/999 1\n", runnable);
    assert_int_equal(pwrite(cores->loadavg_fd, text, (size_t)length, 0), length);
}

static void alb_cores_parse_runnable__text(void **state)
{
    assert_int_equal(alb_cores_parse_runnable("0.20 0.18 0.12 1/80 11206\n"), 1);
    assert_int_equal(alb_cores_parse_runnable("64.00 32.18 9.12 137/2080 5\n"), 137);
    assert_int_equal(alb_cores_parse_runnable("0.20 0.18 0.12 /80 11206\n"), UINT32_MAX);
    assert_int_equal(alb_cores_parse_runnable("0.20 0.18 0.12 1 80"), UINT32_MAX);
    assert_int_equal(alb_cores_parse_runnable(""), UINT32_MAX);
}

static void alb_cores_has_free__unknown_means_no(void **state)
{
    struct alb_cores cores;
    alb_cores_init(&cores);
    assert_true(cores.usable >= 1);
    alb_cores_fini(&cores);
    assert_int_equal(cores.loadavg_fd, -1);
    assert_false(alb_cores_has_free(&cores, 1000));
}

static void alb_cores_has_free__looks_once_a_millisecond(void **state)
{
    struct alb_cores cores;
    open_cores(&cores);
    write_runnable(&cores, 2);
    assert_true(alb_cores_has_free(&cores, 5000));
    write_runnable(&cores, 3);
    assert_true(alb_cores_has_free(&cores, 5000 + ALB_NS_PER_MS - 1));
    assert_false(alb_cores_has_free(&cores, 5000 + ALB_NS_PER_MS));
    alb_cores_fini(&cores);
}

static void look_at(struct alb_cores *cores, uint32_t runnable, alb_time now)
{
    write_runnable(cores, runnable);
    alb_cores_load(cores, now);
}

static void alb_cores_have_room__by_the_mean(void **state)
{
    struct alb_cores cores;
    alb_time now = ALB_NS_PER_S;
    open_cores(&cores);
    look_at(&cores, 3, now += 200 * ALB_NS_PER_MS);
    assert_true(alb_cores_have_room(&cores));
    look_at(&cores, 4, now += 10 * ALB_NS_PER_MS); // for a moment
    assert_true(alb_cores_have_room(&cores));
    look_at(&cores, 4, now += 200 * ALB_NS_PER_MS);
    assert_false(alb_cores_have_room(&cores));
    look_at(&cores, 1, now += 200 * ALB_NS_PER_MS);
    assert_true(alb_cores_have_room(&cores));
    cores.usable = 1; // of two: what the threads may use is not known
    look_at(&cores, 3, now += 200 * ALB_NS_PER_MS);
    assert_false(alb_cores_have_room(&cores));
    alb_cores_fini(&cores);
    cores.usable = 2;
    assert_false(alb_cores_have_room(&cores)); // not to be known
}

static void alb_cores_load__is_a_mean_for_each_processor(void **state)
{
    struct alb_cores cores;
    open_cores(&cores);
    alb_time now = 1000 * ALB_NS_PER_MS;
    write_runnable(&cores, 80);
    assert_int_equal(alb_cores_load(&cores, now), ALB_HOST_LOAD_MAX);
    write_runnable(&cores, 8);
    assert_int_equal(alb_cores_load(&cores, now += 200 * ALB_NS_PER_MS), 4 * ALB_HOST_LOAD_ONE);
    write_runnable(&cores, 4);
    assert_int_equal(alb_cores_load(&cores, now + 9 * ALB_NS_PER_MS), 4 * ALB_HOST_LOAD_ONE); // does not look again yet
    assert_int_equal(alb_cores_load(&cores, now += 100 * ALB_NS_PER_MS), 3 * ALB_HOST_LOAD_ONE);
    write_runnable(&cores, 1); // no less than one
    assert_int_equal(alb_cores_load(&cores, now += 100 * ALB_NS_PER_MS), 2 * ALB_HOST_LOAD_ONE);
    assert_int_equal(alb_cores_load(&cores, now += 1000 * ALB_NS_PER_MS), ALB_HOST_LOAD_ONE);
    alb_cores_fini(&cores);
}

static void alb_cores_has_free__looks_less_often_on_a_busy_host(void **state)
{
    struct alb_cores cores;
    open_cores(&cores);
    write_runnable(&cores, 3); // one too many for a moment is not busy yet
    assert_false(alb_cores_has_free(&cores, ALB_NS_PER_S));
    write_runnable(&cores, 2);
    assert_true(alb_cores_has_free(&cores, ALB_NS_PER_S + ALB_NS_PER_MS));
    write_runnable(&cores, 4);
    assert_false(alb_cores_has_free(&cores, 2 * ALB_NS_PER_S));
    write_runnable(&cores, 2);
    assert_false(alb_cores_has_free(&cores, 2 * ALB_NS_PER_S + 4 * ALB_NS_PER_MS - 1));
    assert_true(alb_cores_has_free(&cores, 2 * ALB_NS_PER_S + 4 * ALB_NS_PER_MS));
    alb_cores_fini(&cores);
}

static void alb_cores_load__unknown_is_one(void **state)
{
    struct alb_cores cores;
    alb_cores_init(&cores);
    alb_cores_fini(&cores);
    assert_int_equal(alb_cores_load(&cores, 1000), ALB_HOST_LOAD_ONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alb_cores_parse_runnable__text),
        cmocka_unit_test(alb_cores_has_free__unknown_means_no),
        cmocka_unit_test(alb_cores_has_free__looks_once_a_millisecond),
        cmocka_unit_test(alb_cores_has_free__looks_less_often_on_a_busy_host),
        cmocka_unit_test(alb_cores_have_room__by_the_mean),
        cmocka_unit_test(alb_cores_load__is_a_mean_for_each_processor),
        cmocka_unit_test(alb_cores_load__unknown_is_one),
    };
    return cmocka_run_group_tests_name("cores", tests, NULL, NULL);
}
