// SPDX-License-Identifier: BSD-2-Clause
// A process ends at the chosen step, by SIGKILL, and nowhere else.
#include "device/crash.h"

#include "base/tests/test.h"
#include "wire/csa.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

// A packet with one command in a batch, as the engine would leave it.
static uint32_t encode_packet(uint8_t *bytes, uint8_t command)
{
    const struct alb_csa_header header = {.source_epoch = 1};
    const struct alb_csa_txn txn = {.command = command, .dest_qpn = 2, .id = {.initiator = 3, .number = 4}};
    alb_csa_encode(&header, bytes);
    return ALB_CSA_OUTER_BYTES + alb_csa_encode_txn(&txn, bytes + ALB_CSA_OUTER_BYTES) + ALB_ICRC_BYTES;
}

static void act(uint8_t command)
{
    uint8_t bytes[512] = {0};
    uint32_t length = encode_packet(bytes, command);
    alb_crash_at_packet(ALB_CRASH_TX, bytes, length);
    alb_crash_at_packet(ALB_CRASH_RX, bytes, length);
    alb_crash_at_packet(ALB_CRASH_RX, bytes, 10);
    alb_crash_at_journal(ALB_CRASH_SAFE, ALB_JOURNAL_COMMIT);
}

// How many times it acts before it dies, of 5; 5: it does not.
static int lives(const char *crash, uint8_t command)
{
    int status, ends[2];
    uint8_t count = 0, byte;
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        setenv("ALBEDO_CRASH", crash, 1);
        alb_crash_init();
        for (int i = 0; i < 5; i++) {
            act(command);
            if (write(ends[1], "x", 1) != 1)
                _exit(1);
        }
        _exit(0);
    }
    close(ends[1]);
    while (read(ends[0], &byte, 1) == 1)
        count++;
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(count == 5 ? WIFEXITED(status) : WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    return count;
}

static void alb_crash__at_its_place_only(void **state)
{
    assert_int_equal(lives("tx:commit:1", ALB_CSA_TXN_COMMIT), 0);
    assert_int_equal(lives("tx:commit:3", ALB_CSA_TXN_COMMIT), 2);
    assert_int_equal(lives("rx:abort:2", ALB_CSA_TXN_ABORT), 1);
    assert_int_equal(lives("rx:abort:2", ALB_CSA_TXN_COMMIT), 5);
    assert_int_equal(lives("sent:commit:1", ALB_CSA_TXN_COMMIT), 5);
    assert_int_equal(lives("safe:commit:4", ALB_CSA_TXN_ASK), 3);
    assert_int_equal(lives("safe:prepare:1", ALB_CSA_TXN_ASK), 5);
}

static void alb_crash__not_understood(void **state)
{
    assert_int_equal(lives("", ALB_CSA_TXN_COMMIT), 5);
    assert_int_equal(lives("tx:commit", ALB_CSA_TXN_COMMIT), 5);
    assert_int_equal(lives("tx:commit:0", ALB_CSA_TXN_COMMIT), 5);
    assert_int_equal(lives("nowhere:commit:1", ALB_CSA_TXN_COMMIT), 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alb_crash__at_its_place_only),
        cmocka_unit_test(alb_crash__not_understood),
    };
    return cmocka_run_group_tests_name("crash", tests, NULL, NULL);
}
