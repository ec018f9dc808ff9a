// SPDX-License-Identifier: BSD-2-Clause
// Durable regions over two devices: committed transactions are in the file, bound ones are bound again, and what
// became of them is known after the region was closed and opened.
#include "device/durable.h"
#include "device/tests/cancelled.h"
#include "device/tests/pair.h"

#include "base/log.h"

#include <stdio.h>
#include <unistd.h>

#define REGION 65536

static char folder[64], path[96];
static struct pair pair;
static struct alb_durable *durable;

static void open_durable(bool page_cache)
{
    const struct alb_durable_init init = {
        .path = path,
        .length = REGION,
        .access = ALB_ACCESS_LOCAL_WRITE | ALB_ACCESS_REMOTE_WRITE | ALB_ACCESS_REMOTE_READ,
        .page_cache = page_cache,
    };
    assert_int_equal(alb_durable_create(pair.side[1].device, pair.side[1].pd, &init, &durable), 0);
}

static int setup(void **state)
{
    pair_device_name = "albedo0";
    snprintf(folder, sizeof(folder), "/tmp/albedo-durable-XXXXXX");
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/region", folder);
    pair_open(&pair, "127.0.0.1", "127.0.0.1", NULL);
    alb_device_lock(pair.side[0].device);
    assert_int_equal(alb_qp_txn_enable(pair.side[0].qp, 16), 0);
    alb_device_unlock(pair.side[0].device);
    return 0;
}

static int teardown(void **state)
{
    char journal[128];
    pair_close(&pair);
    snprintf(journal, sizeof(journal), "%s.journal", path);
    unlink(journal);
    unlink(path);
    return rmdir(folder);
}

// One WRITE of length bytes to the region's offset, as a transaction.
// With a comparison and a notification, if it is held.
static uint64_t post(uint64_t offset, uint32_t length, bool hold)
{
    struct side *side = &pair.side[0];
    struct alb_sge sge = {.addr = (uintptr_t)side->memory + offset, .length = length, .lkey = alb_region_key(side->mr)};
    struct alb_txn_write write = {
        .remote_addr = (uintptr_t)alb_durable_address(durable) + offset,
        .rkey = alb_region_key(alb_durable_region(durable)),
        .sge = &sge,
        .sge_count = 1,
    };
    const struct alb_txn_compare compare = {
        .remote_addr = (uintptr_t)alb_durable_address(durable) + REGION - 8,
        .mask = UINT64_MAX,
        .rkey = write.rkey,
    };
    struct alb_txn_wr wr = {
        .wr_id = 7,
        .flags = ALB_SEND_SIGNALED,
        .writes = &write,
        .write_count = 1,
        .level = hold ? ALB_LEVEL_REFLECTED : ALB_LEVEL_COMMITTED,
        .hold = hold,
        .compares = &compare,
        .compare_count = hold,
        .notify = hold,
        .imm_data = 0x01020304,
        .lease_ns = 30 * ALB_NS_PER_S,
        .submitted = alb_device_now(),
    };
    uint64_t number;
    assert_int_equal(alb_qp_txn_stage(side->qp, &wr, &number), 0);
    alb_qp_send_commit(side->qp);
    alb_device_kick(side->device, side->qp);
    return number;
}

static uint8_t in_file(uint64_t offset)
{
    uint8_t byte = 0;
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(fseek(file, (long)offset, SEEK_SET), 0);
    assert_int_equal(fread(&byte, 1, 1, file), 1);
    fclose(file);
    return byte;
}

static void alb_durable__committed_is_in_the_file(void **state)
{
    open_durable(false);
    memset(pair.side[0].memory, 'x', REGION);
    for (uint32_t i = 0; i < 10; i++) {
        post(i * 5000, 5000, false);
        struct alb_wc wc = side_wait(&pair.side[0]);
        assert_int_equal(wc.status, ALB_WC_SUCCESS);
        assert_int_equal(((uint8_t *)alb_durable_address(durable))[i * 5000 + 4999], 'x');
    }
    assert_int_equal(alb_durable_destroy(durable), 0);
    assert_int_equal(in_file(49999), 'x');
    assert_int_equal(in_file(50000), 0);
}

static void alb_durable__many_in_flight(void **state)
{
    open_durable(true);
    memset(pair.side[0].memory, 'y', REGION);
    for (uint32_t round = 0; round < 20; round++) {
        for (uint32_t i = 0; i < 8; i++)
            post(i * 1000, 1000, false);
        for (uint32_t i = 0; i < 8; i++)
            assert_int_equal(side_wait(&pair.side[0]).status, ALB_WC_SUCCESS);
    }
    assert_int_equal(alb_durable_destroy(durable), 0);
    assert_int_equal(in_file(7999), 'y');
}

// The region goes while a transaction is bound: that one is aborted.
static void alb_durable_destroy__aborts_what_is_bound(void **state)
{
    open_durable(false);
    memset(pair.side[0].memory, 'z', REGION);
    uint64_t number = post(100, 1000, true);
    assert_int_equal(side_wait(&pair.side[0]).status, ALB_WC_SUCCESS); // bound
    assert_int_equal(alb_durable_destroy(durable), 0);
    open_durable(false);
    alb_device_lock(pair.side[0].device);
    alb_qp_txn_decide(pair.side[0].qp, number, true, alb_device_now());
    alb_device_unlock(pair.side[0].device);
    struct alb_txn_status status = {.state = ALB_TXN_REFLECTING};
    for (int i = 0; i < 5000 && status.state == ALB_TXN_REFLECTING; i++) {
        alb_device_lock(pair.side[0].device);
        assert_int_equal(alb_qp_txn_query(pair.side[0].qp, number, &status), 0);
        alb_device_unlock(pair.side[0].device);
        usleep(1000);
    }
    assert_int_equal(status.state, ALB_TXN_ABORTED);
    assert_int_equal(status.reason, ALB_TXN_REGION_GONE);
    assert_int_equal(alb_durable_destroy(durable), 0);
    assert_int_equal(in_file(100), 0);
}

static void copy_file(const char *from, const char *to)
{
    char command[400];
    snprintf(command, sizeof(command), "cp %s %s", from, to);
    assert_int_equal(system(command), 0);
}

// What a crash would have left is opened by another device: there the transaction is bound, and is committed by
// whichever program has its token.
static void alb_durable_create__binds_again(void **state)
{
    char journal[128], second_path[128], second_journal[160];
    struct alb_txn_status status;
    struct alb_durable *second;
    struct alb_durable_init init = {.path = second_path, .access = ALB_ACCESS_LOCAL_WRITE | ALB_ACCESS_REMOTE_WRITE};
    snprintf(journal, sizeof(journal), "%s.journal", path);
    snprintf(second_path, sizeof(second_path), "%s-second", path);
    snprintf(second_journal, sizeof(second_journal), "%s.journal", second_path);
    open_durable(false);
    memset(pair.side[0].memory, 'w', REGION);
    side_receive(&pair.side[1], 0, 0);
    uint64_t number = post(100, 1000, true);
    assert_int_equal(side_wait(&pair.side[0]).status, ALB_WC_SUCCESS); // bound
    copy_file(path, second_path);
    copy_file(journal, second_journal);
    assert_int_equal(alb_durable_create(pair.side[0].device, pair.side[0].pd, &init, &second), 0);
    const uint8_t *bytes = alb_durable_address(second);
    assert_int_equal(bytes[100], 0);

    alb_device_lock(pair.side[0].device);
    assert_int_equal(alb_qp_txn_query(pair.side[0].qp, number, &status), 0);
    alb_device_unlock(pair.side[0].device);
    assert_int_not_equal(status.token.keeper, 0);
    struct side *asker = &pair.side[1];
    alb_device_lock(asker->device);
    assert_int_equal(alb_qp_txn_enable(asker->qp, 4), 0);
    alb_device_unlock(asker->device);
    assert_int_equal(alb_qp_txn_reconcile_stage(asker->qp, 9, ALB_SEND_SIGNALED, &status.token, ALB_TXN_COMMIT), 0);
    alb_qp_send_commit(asker->qp);
    alb_device_kick(asker->device, asker->qp);
    struct alb_wc wc = side_wait(asker);
    assert_int_equal(wc.wr_id, 9);
    assert_int_equal(wc.status, ALB_WC_SUCCESS);
    alb_device_lock(pair.side[0].device); // whose journal's thread has exposed it
    assert_int_equal(bytes[100], 'w');
    assert_int_equal(bytes[1099], 'w');
    assert_int_equal(bytes[1100], 0);
    alb_device_unlock(pair.side[0].device);
    assert_int_equal(alb_durable_destroy(second), 0);
    assert_int_equal(alb_durable_destroy(durable), 0);
    unlink(second_journal);
    unlink(second_path);
}

static void alb_durable_create__one_at_a_time(void **state)
{
    struct alb_durable *second;
    const struct alb_durable_init init = {.path = path, .length = REGION, .access = ALB_ACCESS_LOCAL_WRITE};
    alb_log_set_level(ALB_LOG_ERROR);
    open_durable(false);
    assert_int_equal(alb_durable_create(pair.side[0].device, pair.side[0].pd, &init, &second), EBUSY);
    assert_int_equal(alb_durable_destroy(durable), 0);
}

static void open_and_close(void *unused)
{
    open_durable(false);
    assert_int_equal(alb_durable_destroy(durable), 0);
}

static void alb_durable_create__in_a_cancelled_thread(void **state)
{
    cancelled_call(open_and_close, NULL);
    alb_durables_before_fork(); // no call is in between any more
    alb_durables_after_fork_in_parent();
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(alb_durable__committed_is_in_the_file),     TEST(alb_durable__many_in_flight),
        TEST(alb_durable_destroy__aborts_what_is_bound), TEST(alb_durable_create__binds_again),
        TEST(alb_durable_create__one_at_a_time),         TEST(alb_durable_create__in_a_cancelled_thread),
    };
    return cmocka_run_group_tests_name("durable", tests, NULL, NULL);
}
