// SPDX-License-Identifier: BSD-2-Clause
// What a batch refers to may be written to while it is sent.
#include "device/tests/pair.h"

#include <pthread.h>
#include <stdatomic.h>

struct writer {
    _Atomic uint64_t *words;
    uint64_t count;
    atomic_bool is_over;
};

// Each word once after the other, for as long as it is let. The device reads it beside that, as a NIC would.
__attribute__((no_sanitize("thread"))) static void *write_on(void *argument)
{
    struct writer *writer = argument;
    for (uint64_t i = 0; !atomic_load_explicit(&writer->is_over, memory_order_relaxed); i++)
        atomic_store_explicit(&writer->words[i % writer->count], i, memory_order_relaxed);
    return NULL;
}

// A READ of memory that its owner writes to gives some mixture of old and new, at the first attempt.
static void read_what_changes(uint32_t length)
{
    struct pair pair;
    struct writer writer = {0};
    pthread_t thread;
    pair_open(&pair, "127.92.4.1", "127.92.4.1", NULL);
    struct side *reader = &pair.side[0], *owner = &pair.side[1];
    writer.words = (_Atomic uint64_t *)owner->memory;
    writer.count = length / sizeof(*writer.words);
    assert_int_equal(pthread_create(&thread, NULL, write_on, &writer), 0);
    for (int i = 0; i < 100; i++) {
        side_read(reader, owner, 0, length);
        assert_int_equal(side_wait(reader).status, ALB_WC_SUCCESS);
    }
    atomic_store(&writer.is_over, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(reader->device->board.header->device_stats.dropped[ALB_DROP_BAD_ICRC], 0);
    pair_close(&pair);
}

static void read__of_memory_that_changes(void **state)
{
    static const uint32_t lengths[] = {1000, 4096, 65536, 1 << 18};
    static const char *const names[] = {"roce0", "albedo0"};
    for (size_t n = 0; n < ALB_COUNT(names); n++) {
        pair_device_name = names[n];
        for (size_t i = 0; i < ALB_COUNT(lengths); i++)
            read_what_changes(lengths[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(read__of_memory_that_changes),
    };
    return cmocka_run_group_tests_name("outbox", tests, NULL, NULL);
}
