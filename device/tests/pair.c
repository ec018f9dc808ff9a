// SPDX-License-Identifier: BSD-2-Clause
#include "device/tests/pair.h"

#include "device/clock.h"
#include "device/drain.h"

#include <unistd.h>

#define WAIT_NS_MAX (100 * ALB_NS_PER_S) // ends what hangs

const char *pair_device_name = "roce0";

struct alb_device_options *pair_options(const char *address)
{
    struct alb_device_options *options = calloc(1, sizeof(*options));
    assert_true(alb_addr_parse(address, &options->addresses[0]));
    options->address_count = 1;
    return options;
}

static void open_objects(struct side *side, enum alb_qp_type type)
{
    const uint32_t access =
        ALB_ACCESS_LOCAL_WRITE | ALB_ACCESS_REMOTE_WRITE | ALB_ACCESS_REMOTE_READ | ALB_ACCESS_REMOTE_ATOMIC;
    side->memory = aligned_alloc(4096, PAIR_BYTES);
    memset(side->memory, 0, PAIR_BYTES);
    alb_device_lock(side->device);
    assert_int_equal(alb_pd_create(alb_device_engine(side->device), &side->pd), 0);
    assert_int_equal(alb_cq_create(alb_device_engine(side->device), 1024, NULL, &side->cq), 0);
    assert_int_equal(
        alb_mr_create(side->pd, side->memory, PAIR_BYTES, (uint64_t)(uintptr_t)side->memory, access, &side->mr), 0);
    struct alb_qp_init init = {
        .type = type,
        .send_cq = side->cq,
        .recv_cq = side->cq,
        .cap = {.send_wr_max = 64, .recv_wr_max = 64, .send_sge_max = 1, .recv_sge_max = 1},
        .sq_sig_all = true,
    };
    assert_int_equal(alb_qp_create(side->pd, &init, &side->qp), 0);
    alb_device_unlock(side->device);
}

void side_open(struct side *side, const struct alb_device_options *options, enum alb_qp_type type)
{
    assert_int_equal(alb_device_create(pair_device_name, options, &side->device), 0);
    open_objects(side, type);
}

void side_open_shared(struct side *side, const struct alb_device_options *options, enum alb_qp_type type)
{
    assert_int_equal(alb_device_open(pair_device_name, options, &side->device), 0);
    open_objects(side, type);
}

static void close_objects(struct side *side)
{
    alb_device_drain(side->device);
    alb_device_lock(side->device);
    assert_int_equal(alb_qp_destroy(side->qp), 0);
    assert_int_equal(alb_mr_destroy(side->mr), 0);
    assert_int_equal(alb_cq_destroy(side->cq), 0);
    assert_int_equal(alb_pd_destroy(side->pd), 0);
    alb_device_unlock(side->device);
}

void side_close(struct side *side)
{
    close_objects(side);
    alb_device_destroy(side->device);
    free(side->memory);
}

void side_close_shared(struct side *side)
{
    close_objects(side);
    alb_device_close(side->device);
    free(side->memory);
}

void side_connect_to(struct side *a, alb_qpn dest_qpn, const struct alb_addr *peer, uint8_t timeout, uint8_t retry_cnt)
{
    struct alb_qp_attr attr = {
        .state = ALB_QPS_INIT,
        .port = 1,
        .access = ALB_ACCESS_REMOTE_WRITE | ALB_ACCESS_REMOTE_READ | ALB_ACCESS_REMOTE_ATOMIC,
        .path_mtu_bytes = alb_device_mtu_bytes(a->device),
        .dest_qpn = dest_qpn,
        .rq_psn = 7,
        .sq_psn = 7,
        .timeout = timeout,
        .retry_cnt = retry_cnt,
        .rnr_retry = 7,
        .min_rnr_timer = 1,
        .max_rd_atomic = 4,
        .max_dest_rd_atomic = 4,
    };
    assert_int_equal(alb_device_resolve(a->device, 0, peer, &attr.av), 0);
    bool is_rc = alb_qp_kind(a->qp) == ALB_QPT_RC;
    alb_device_lock(a->device);
    assert_int_equal(alb_qp_modify(a->qp, &attr, ALB_QP_STATE | ALB_QP_PORT | ALB_QP_PKEY_INDEX | ALB_QP_ACCESS_FLAGS,
                                   alb_device_now()),
                     0);
    attr.state = ALB_QPS_RTR;
    uint32_t mask = ALB_QP_STATE | ALB_QP_AV | ALB_QP_PATH_MTU | ALB_QP_DEST_QPN | ALB_QP_RQ_PSN;
    if (is_rc)
        mask |= ALB_QP_MAX_DEST_RD_ATOMIC | ALB_QP_MIN_RNR_TIMER;
    assert_int_equal(alb_qp_modify(a->qp, &attr, mask, alb_device_now()), 0);
    attr.state = ALB_QPS_RTS;
    mask = ALB_QP_STATE | ALB_QP_SQ_PSN;
    if (is_rc)
        mask |= ALB_QP_TIMEOUT | ALB_QP_RETRY_CNT | ALB_QP_RNR_RETRY | ALB_QP_MAX_QP_RD_ATOMIC;
    assert_int_equal(alb_qp_modify(a->qp, &attr, mask, alb_device_now()), 0);
    alb_device_unlock(a->device);
}

void side_connect(struct side *a, const struct side *b, uint8_t timeout, uint8_t retry_cnt)
{
    side_connect_to(a, alb_qp_number(b->qp), alb_device_gid(b->device, 0), timeout, retry_cnt);
}

void pair_open(struct pair *pair, const char *address_a, const char *address_b, const struct alb_faults_spec *faults)
{
    const char *const addresses[] = {address_a, address_b};
    for (int i = 0; i < 2; i++) {
        struct alb_device_options *options = pair_options(addresses[i]);
        if (faults)
            options->faults = *faults;
        options->fault_seed = (uint64_t)i + 1;
        side_open(&pair->side[i], options, ALB_QPT_RC);
        free(options);
    }
    // On a machine with much to do a thread may be off its processor for a second; a lossy pair is not to wait longer
    // than it must.
    uint8_t timeout = faults ? 16 : 18;
    side_connect(&pair->side[0], &pair->side[1], timeout, 7);
    side_connect(&pair->side[1], &pair->side[0], timeout, 7);
}

void pair_close(struct pair *pair)
{
    side_close(&pair->side[0]);
    side_close(&pair->side[1]);
}

static void post(struct side *from, const struct alb_send_wr *wr)
{
    assert_int_equal(alb_qp_send_stage(from->qp, wr), 0);
    alb_qp_send_commit(from->qp);
    alb_device_kick(from->device, from->qp);
}

static void one_sided(struct side *side, enum alb_wr_opcode opcode, uint64_t address, uint32_t rkey, uint64_t offset,
                      uint32_t length)
{
    const struct alb_sge sge = {
        .addr = (uint64_t)(uintptr_t)side->memory + offset,
        .length = length,
        .lkey = alb_region_key(side->mr),
    };
    const struct alb_send_wr wr = {
        .opcode = opcode,
        .sge = &sge,
        .sge_count = 1,
        .remote_addr = address + offset,
        .rkey = rkey,
    };
    post(side, &wr);
}

void side_write_to(struct side *from, uint64_t address, uint32_t rkey, uint64_t offset, uint32_t length)
{
    one_sided(from, ALB_WR_RDMA_WRITE, address, rkey, offset, length);
}

void side_read(struct side *to, const struct side *from, uint64_t offset, uint32_t length)
{
    one_sided(to, ALB_WR_RDMA_READ, (uint64_t)(uintptr_t)from->memory, alb_region_key(from->mr), offset, length);
}

void side_write(struct side *from, const struct side *to, uint64_t offset, uint32_t length)
{
    side_write_to(from, (uint64_t)(uintptr_t)to->memory, alb_region_key(to->mr), offset, length);
}

void side_send(struct side *from, uint64_t offset, uint32_t length)
{
    const struct alb_sge sge = {
        .addr = (uint64_t)(uintptr_t)from->memory + offset,
        .length = length,
        .lkey = alb_region_key(from->mr),
    };
    const struct alb_send_wr wr = {.opcode = ALB_WR_SEND, .sge = &sge, .sge_count = 1};
    post(from, &wr);
}

void side_receive(struct side *at, uint64_t offset, uint32_t length)
{
    const struct alb_sge sge = {
        .addr = (uint64_t)(uintptr_t)at->memory + offset,
        .length = length,
        .lkey = alb_region_key(at->mr),
    };
    bool bell = false;
    assert_int_equal(alb_qp_recv_post(at->qp, offset, &sge, 1, &bell), 0);
    if (bell)
        alb_device_kick(at->device, at->qp);
}

static struct alb_wc wait(struct side *side, bool polls)
{
    alb_time until = alb_clock_now() + WAIT_NS_MAX;
    const struct alb_wc *wc;
    while (!(wc = alb_cq_peek(side->cq))) {
        assert_true(alb_clock_now() < until);
        if (polls)
            alb_device_poll(side->device);
        else
            usleep(100);
    }
    struct alb_wc result = *wc;
    alb_cq_pop(side->cq);
    return result;
}

struct alb_wc side_wait(struct side *side)
{
    return wait(side, true);
}

struct alb_wc side_wait_idle(struct side *side)
{
    return wait(side, false);
}

void pair_fill(uint8_t *memory, uint32_t length, uint8_t seed)
{
    for (uint32_t i = 0; i < length; i++)
        memory[i] = (uint8_t)(i * 31 + (i >> 8) + seed);
}

void side_lay_to_sleep(struct side *side)
{
    struct alb_device *device = side->device;
    atomic_store(&device->polled_at, alb_clock_now() + PAIR_LONG_NS);
    alb_port_wake(&device->port); // it may sleep on the sockets
    while (!atomic_load(&device->naps))
        usleep(100);
    usleep(1000); // until it does
}

void side_pass_by(struct side *side)
{
    alb_device_lock(side->device);
    alb_device_unlock(side->device);
}

void pair_write_and_check(struct pair *pair, uint32_t length, struct alb_wc (*wait_for)(struct side *))
{
    struct side *a = &pair->side[0], *b = &pair->side[1];
    pair_fill(a->memory, length, (uint8_t)length);
    memset(b->memory, 0, length);
    side_pass_by(b);
    side_write(a, b, 0, length);
    struct alb_wc wc = wait_for(a);
    assert_int_equal(wc.status, ALB_WC_SUCCESS);
    side_pass_by(b);
    assert_memory_equal(a->memory, b->memory, length);
}
