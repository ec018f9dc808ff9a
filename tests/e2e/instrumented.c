// SPDX-License-Identifier: BSD-2-Clause
// A program as its author would test it with a sanitizer: one thread posts SENDs, another one takes the completions,
// looks at what came and gives the buffers back. With an argument it has a mistake that the sanitizer should report.
//
//   instrumented          right
//   instrumented race     a buffer is used again before the completion of its SEND is taken
//   instrumented freed    a buffer is freed while the peer may still write to it
//   instrumented left     right, and ends without giving anything back
#include "loop.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

enum { SLOTS = 16, BYTES = 256, MESSAGES = 500 };

struct work {
    struct pair pair;
    struct ibv_mr *from_mr, *to_mr;
    unsigned char (*from)[BYTES], (*to)[BYTES];
    atomic_uint sent, reusable; // messages; the difference is in flight
    bool is_hasty;
};

static void post_recv(struct work *work, uint64_t slot)
{
    struct ibv_sge sge = {.addr = (uintptr_t)work->to[slot], .length = BYTES, .lkey = work->to_mr->lkey};
    struct ibv_recv_wr wr = {.wr_id = slot, .sg_list = &sge, .num_sge = 1}, *bad;
    check_error(ibv_post_recv(work->pair.far, &wr, &bad), "ibv_post_recv");
}

static void post_send(struct work *work, uint64_t slot)
{
    struct ibv_sge sge = {.addr = (uintptr_t)work->from[slot], .length = BYTES, .lkey = work->from_mr->lkey};
    struct ibv_send_wr wr = {
        .wr_id = slot, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};
    struct ibv_send_wr *bad;
    check_error(ibv_post_send(work->pair.near, &wr, &bad), "ibv_post_send");
}

// One byte, since compilers do not always let a sanitizer see memset.
static void mark(unsigned char *buffer, unsigned int i)
{
    buffer[BYTES - 1] = (unsigned char)i;
}

// Clears the buffer of a message that has been sent, and looks at one that has come.
static void *take_completions(void *argument)
{
    struct work *work = argument;
    for (unsigned int i = 0; i < MESSAGES; i++) {
        if (work->is_hasty) {
            while (atomic_load_explicit(&work->sent, memory_order_relaxed) <= i)
                ;
            mark(work->from[i % SLOTS], 0);
        }
        struct ibv_wc came = loop_wait(work->pair.far_cq);
        check(came.status == IBV_WC_SUCCESS && (work->is_hasty || work->to[came.wr_id][BYTES - 1] == i % 251), "SEND");
        post_recv(work, came.wr_id);
        struct ibv_wc left = loop_wait(work->pair.cq);
        check(left.status == IBV_WC_SUCCESS, "completion");
        mark(work->from[left.wr_id], 0);
        atomic_fetch_add(&work->reusable, 1);
    }
    return NULL;
}

static void exchange(struct work *work)
{
    pthread_t thread;
    for (uint64_t slot = 0; slot < SLOTS; slot++)
        post_recv(work, slot);
    check_error(pthread_create(&thread, NULL, take_completions, work), "pthread_create");
    for (unsigned int i = 0; i < MESSAGES; i++) {
        while (i - atomic_load(&work->reusable) == SLOTS)
            sched_yield();
        mark(work->from[i % SLOTS], i % 251);
        post_send(work, i % SLOTS);
        atomic_store_explicit(&work->sent, i + 1, memory_order_relaxed);
    }
    check_error(pthread_join(thread, NULL), "pthread_join");
}

static void write_to_freed(struct work *work)
{
    free(work->to);
    loop_post(work->pair.near, IBV_WR_RDMA_WRITE, work->from_mr, work->from[0], BYTES, work->to_mr, work->to[1]);
    loop_wait_success(work->pair.cq);
    work->to = NULL;
}

int main(int argc, char **argv)
{
    static struct work work;
    static struct loop loop;
    const char *mistake = argc > 1 ? argv[1] : "";
    work.from = calloc(SLOTS, BYTES);
    work.to = calloc(SLOTS, BYTES);
    work.is_hasty = strcmp(mistake, "race") == 0;
    check(work.from && work.to, "memory");
    loop_open(&loop);
    loop_connect(&loop, &work.pair);
    work.from_mr = loop_register(&loop, work.from, SLOTS * BYTES);
    work.to_mr = loop_register(&loop, work.to, SLOTS * BYTES);
    if (strcmp(mistake, "freed") == 0)
        write_to_freed(&work);
    else
        exchange(&work);
    puts("done");
    if (strcmp(mistake, "left") == 0)
        return 0;
    ibv_dereg_mr(work.from_mr);
    ibv_dereg_mr(work.to_mr);
    loop_disconnect(&work.pair);
    loop_close(&loop);
    free(work.from);
    free(work.to);
    return 0;
}
