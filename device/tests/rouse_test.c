// SPDX-License-Identifier: BSD-2-Clause
// Which program is roused by the sockets, and that nothing is left to the device thread then. Where a test is about who
// drives, the device threads are laid to sleep for longer than it takes.
#include "device/impl.h"
#include "device/tests/pair.h"

#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

#define ROUNDS         16
#define VAIN           512
#define VAIN_FOR_EVENT 32
#define NOW            ALB_NS_PER_S

static struct alb_rouse begun(int fd)
{
    struct alb_rouse rouse;
    alb_rouse_init(&rouse);
    for (int i = 0; i < ROUNDS; i++)
        assert_int_equal(alb_rouse_note(&rouse, fd, true, NOW), ALB_ROUSE_NOTHING);
    assert_int_equal(alb_rouse_note(&rouse, fd, true, NOW), ALB_ROUSE_BEGIN);
    return rouse;
}

static void alb_rouse_note__after_rounds_in_which_it_asked_until_none_was_there(void **state)
{
    struct alb_rouse rouse = begun(5);
    assert_int_equal(alb_rouse_note(&rouse, 5, true, NOW), ALB_ROUSE_LOOK);
    assert_int_equal(alb_rouse_note(&rouse, 5, false, NOW), ALB_ROUSE_LOOK);
    alb_rouse_fini(&rouse);
}

static void alb_rouse_note__not_if_they_are_far_apart(void **state)
{
    struct alb_rouse rouse;
    alb_rouse_init(&rouse);
    for (alb_time i = 0; i < 10 * ROUNDS; i++)
        assert_int_equal(alb_rouse_note(&rouse, 5, true, NOW + i * 10001 * ALB_NS_PER_US), ALB_ROUSE_NOTHING);
    alb_rouse_fini(&rouse);
}

static void alb_rouse_note__not_by_asking_alone(void **state)
{
    struct alb_rouse rouse;
    alb_rouse_init(&rouse);
    for (int i = 0; i < 10 * VAIN; i++)
        assert_int_equal(alb_rouse_note(&rouse, 5, false, NOW), ALB_ROUSE_NOTHING);
    alb_rouse_fini(&rouse);
}

static void alb_rouse_note__ends_when_another_has_events(void **state)
{
    struct alb_rouse rouse = begun(5);
    assert_int_equal(alb_rouse_note(&rouse, 6, false, NOW), ALB_ROUSE_NOTHING); // it has none
    assert_int_equal(alb_rouse_note(&rouse, 5, false, NOW), ALB_ROUSE_LOOK);
    assert_int_equal(alb_rouse_note(&rouse, 6, true, NOW), ALB_ROUSE_END);
    for (int i = 0; i < 10 * ROUNDS; i++) // while both have, neither is
        assert_int_equal(alb_rouse_note(&rouse, 5 + i % 2, true, NOW), ALB_ROUSE_NOTHING);
    alb_rouse_fini(&rouse);
}

static void ask_in_vain(struct alb_rouse *rouse, int times)
{
    for (int i = 0; i < times; i++)
        assert_int_equal(alb_rouse_note(rouse, 5, false, NOW), ALB_ROUSE_LOOK);
}

static void alb_rouse_note__ends_when_it_is_woken_for_others(void **state)
{
    struct alb_rouse rouse = begun(5);
    for (int i = 0; i < 3; i++) { // now and then an event is not enough
        ask_in_vain(&rouse, i == 0 ? VAIN : VAIN_FOR_EVENT);
        assert_int_equal(alb_rouse_note(&rouse, 5, true, NOW), ALB_ROUSE_LOOK);
    }
    ask_in_vain(&rouse, VAIN_FOR_EVENT);
    assert_int_equal(alb_rouse_note(&rouse, 5, false, NOW), ALB_ROUSE_END);
    assert_int_equal(alb_rouse_note(&rouse, 5, false, NOW), ALB_ROUSE_NOTHING);
    for (int i = 0; i < ROUNDS - 1; i++)
        assert_int_equal(alb_rouse_note(&rouse, 5, true, NOW), ALB_ROUSE_NOTHING);
    assert_int_equal(alb_rouse_note(&rouse, 5, true, NOW), ALB_ROUSE_BEGIN);
    alb_rouse_fini(&rouse);
}

// For a while, and then it must show again that it lives by events.
static void alb_rouse_note__not_while_another_waits(void **state)
{
    struct alb_rouse rouse = begun(5);
    assert_int_equal(alb_rouse_note(&rouse, 6, true, NOW), ALB_ROUSE_END);
    rouse.barred_until = NOW + 1;
    for (int i = 0; i < 10 * ROUNDS; i++)
        assert_int_equal(alb_rouse_note(&rouse, 6, true, NOW), ALB_ROUSE_NOTHING);
    assert_int_equal(alb_rouse_note(&rouse, 6, true, NOW + 1), ALB_ROUSE_BEGIN);
    alb_rouse_fini(&rouse);
}

static void alb_rouse_note__not_what_the_kernel_refuses(void **state)
{
    struct alb_rouse rouse = begun(5);
    rouse.refused_fd = 6;
    assert_int_equal(alb_rouse_note(&rouse, 6, true, NOW), ALB_ROUSE_END);
    for (int i = 0; i < 10 * ROUNDS; i++)
        assert_int_equal(alb_rouse_note(&rouse, 6, true, NOW), ALB_ROUSE_NOTHING);
    alb_rouse_fini(&rouse);
}

static bool is_readable(int fd)
{
    struct pollfd file = {.fd = fd, .events = POLLIN};
    return poll(&file, 1, 0) == 1;
}

// What a program does that lives by events of this file.
static int open_roused(struct side *side)
{
    int fd = epoll_create1(EPOLL_CLOEXEC);
    struct alb_rouse *rouse = &side->device->rouse;
    for (int i = 0; i < 1000 * ROUNDS && atomic_load(&rouse->came_at) == 0; i++)
        alb_device_ask(side->device, fd, true);
    assert_int_not_equal(atomic_load(&rouse->came_at), 0);
    atomic_store(&rouse->came_at, alb_clock_now() + PAIR_LONG_NS); // however long the test waits for a processor
    return fd;
}

static void alb_device_ask__takes_in_what_roused_it(void **state)
{
    struct pair pair;
    pair_open(&pair, "127.92.4.1", "127.92.4.2", NULL);
    struct side *a = &pair.side[0], *b = &pair.side[1];
    int fd = open_roused(b);
    side_lay_to_sleep(b);
    assert_false(is_readable(fd));
    side_receive(b, 0, 64);
    side_send(a, 0, 64);
    struct pollfd file = {.fd = fd, .events = POLLIN};
    assert_int_equal(poll(&file, 1, 20000), 1);
    assert_true(alb_cq_is_empty(b->cq));
    while (alb_cq_is_empty(b->cq))
        alb_device_ask(b->device, fd, false);
    while (is_readable(fd)) // by what the other side asks, since it is not answered yet
        alb_device_ask(b->device, fd, false);
    alb_device_forget_file(b->device, fd);
    close(fd);
    pair_close(&pair);
}

// Be it taken in by its own look or by somebody else's: it was readable.
static void alb_device_ask__tells_what_raised_nothing(void **state)
{
    struct pair pair;
    pair_open(&pair, "127.92.4.1", "127.92.4.2", NULL);
    struct side *a = &pair.side[0], *b = &pair.side[1];
    int fd = open_roused(b);
    side_lay_to_sleep(b);
    alb_device_ask(b->device, fd, false); // what was there before
    for (int i = 0; i < 3; i++) {
        assert_int_equal(alb_device_ask(b->device, fd, false), ALB_ROUSED_QUIET);
        side_write(a, b, 0, 64);
        struct pollfd file = {.fd = fd, .events = POLLIN};
        assert_int_equal(poll(&file, 1, 20000), 1);
        while (i == 1 && is_readable(fd))
            alb_device_poll(b->device);
        bool had_one = i == 2;
        assert_int_equal(alb_device_ask(b->device, fd, had_one), had_one ? ALB_ROUSED_QUIET : ALB_ROUSED_STIRRED);
        while (is_readable(fd))
            alb_device_ask(b->device, fd, false);
        alb_device_note_armed(b->device, true);
        assert_int_equal(side_wait(a).status, ALB_WC_SUCCESS);
        alb_device_ask(b->device, fd, false); // probes, say
    }
    assert_int_equal(alb_device_ask(a->device, fd, false), ALB_ROUSED_NOT);
    alb_device_forget_file(b->device, fd);
    close(fd);
    pair_close(&pair);
}

// The acknowledgement goes when it arms its queue, not when the device thread comes back.
static void alb_device_note_armed__leaves_nothing_to_a_thread_that_naps(void **state)
{
    struct pair pair;
    pair_open(&pair, "127.92.4.1", "127.92.4.2", NULL);
    struct side *a = &pair.side[0], *b = &pair.side[1];
    int fd = open_roused(b);
    side_lay_to_sleep(b);
    side_receive(b, 0, 64);
    side_send(a, 0, 64);
    while (alb_cq_is_empty(b->cq))
        alb_device_ask(b->device, fd, false);
    alb_time began_at = alb_clock_now();
    alb_device_note_armed(b->device, true);
    assert_int_equal(side_wait_idle(a).status, ALB_WC_SUCCESS);
    assert_true(alb_clock_now() - began_at < PAIR_LONG_NS / 2);
    alb_device_forget_file(b->device, fd);
    close(fd);
    pair_close(&pair);
}

static void alb_device_forget_file__is_not_roused_any_more(void **state)
{
    struct pair pair;
    pair_open(&pair, "127.92.4.1", "127.92.4.2", NULL);
    struct side *a = &pair.side[0], *b = &pair.side[1];
    int fd = open_roused(b);
    alb_device_forget_file(b->device, fd + 1); // another
    assert_int_not_equal(atomic_load(&b->device->rouse.came_at), 0);
    alb_device_forget_file(b->device, fd);
    assert_int_equal(atomic_load(&b->device->rouse.came_at), 0);
    side_lay_to_sleep(b);
    side_receive(b, 0, 64);
    side_send(a, 0, 64);
    usleep(1000);
    assert_false(is_readable(fd));
    alb_device_leave(b->device);
    assert_int_equal(side_wait(b).status, ALB_WC_SUCCESS);
    close(fd);
    pair_close(&pair);
}

// No epoll instance, say, or one nested too deeply.
static void alb_device_ask__of_a_file_that_cannot_watch(void **state)
{
    struct pair pair;
    pair_open(&pair, "127.92.4.1", "127.92.4.2", NULL);
    struct alb_device *device = pair.side[0].device;
    int files[2];
    assert_int_equal(pipe(files), 0);
    for (int i = 0; i < 1000 && device->rouse.refused_fd < 0; i++)
        assert_int_equal(alb_device_ask(device, files[0], true), ALB_ROUSED_NOT);
    assert_int_equal(device->rouse.refused_fd, files[0]);
    assert_int_equal(device->port.rouses_fd, -1);
    alb_device_forget_file(device, files[0]); // another may get its number
    assert_int_equal(device->rouse.refused_fd, -1);
    close(files[0]);
    close(files[1]);
    pair_close(&pair);
}

static void alb_device_leave__of_another_thread_ends_it(void **state)
{
    struct pair pair;
    pair_open(&pair, "127.92.4.1", "127.92.4.2", NULL);
    struct alb_device *device = pair.side[0].device;
    int fd = open_roused(&pair.side[0]);
    alb_device_leave(device);
    assert_int_equal(atomic_load(&device->rouse.came_at), 0);
    assert_int_equal(device->port.rouses_fd, -1);
    assert_int_equal(alb_device_ask(device, fd, true), ALB_ROUSED_NOT);
    alb_device_forget_file(device, fd);
    close(fd);
    pair_close(&pair);
}

static void alb_rouse_review__ends_what_does_not_come_by(void **state)
{
    struct pair pair;
    pair_open(&pair, "127.92.4.1", "127.92.4.2", NULL);
    struct alb_device *device = pair.side[0].device;
    int fd = open_roused(&pair.side[0]);
    alb_time came_at = atomic_load(&device->rouse.came_at);
    alb_rouse_review(device, came_at + 100 * ALB_NS_PER_MS - 1);
    assert_int_equal(atomic_load(&device->rouse.came_at), came_at);
    alb_rouse_review(device, came_at + 100 * ALB_NS_PER_MS);
    assert_int_equal(atomic_load(&device->rouse.came_at), 0);
    assert_int_equal(device->port.rouses_fd, -1);
    close(fd);
    pair_close(&pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alb_rouse_note__after_rounds_in_which_it_asked_until_none_was_there),
        cmocka_unit_test(alb_rouse_note__not_if_they_are_far_apart),
        cmocka_unit_test(alb_rouse_note__not_by_asking_alone),
        cmocka_unit_test(alb_rouse_note__ends_when_another_has_events),
        cmocka_unit_test(alb_rouse_note__ends_when_it_is_woken_for_others),
        cmocka_unit_test(alb_rouse_note__not_while_another_waits),
        cmocka_unit_test(alb_rouse_note__not_what_the_kernel_refuses),
        cmocka_unit_test(alb_device_ask__takes_in_what_roused_it),
        cmocka_unit_test(alb_device_ask__tells_what_raised_nothing),
        cmocka_unit_test(alb_device_note_armed__leaves_nothing_to_a_thread_that_naps),
        cmocka_unit_test(alb_device_forget_file__is_not_roused_any_more),
        cmocka_unit_test(alb_device_ask__of_a_file_that_cannot_watch),
        cmocka_unit_test(alb_device_leave__of_another_thread_ends_it),
        cmocka_unit_test(alb_rouse_review__ends_what_does_not_come_by),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
