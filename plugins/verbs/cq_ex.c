// SPDX-License-Identifier: BSD-2-Clause
// ibv_create_cq_ex(3): completions read field by field, with timestamps. Between ibv_start_poll and ibv_end_poll the
// thread keeps the queue's poll lock. What it reads is a copy, since the completion is polled as soon as it is shown:
// programs post the next request between the two, into the place that this one had, or destroy the queue pair that it
// is of, and the completions behind it with that.
#include "plugins/verbs/door.h"
#include "plugins/verbs/race_detector.h"

#include <time.h>

static const uint64_t flags_supported =
    IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK;

static struct alb_door_cq *door_cq(struct ibv_cq_ex *cq)
{
    return ALB_CONTAINER_OF(cq, struct alb_door_cq, ex);
}

static int show(struct alb_door_cq *cq)
{
    const struct alb_wc *oldest = alb_cq_peek(cq->engine_cq);
    if (!oldest)
        return ENOENT;
    cq->shown = *oldest;
    alb_cq_pop(cq->engine_cq);
    alb_race_detector_complete(cq->shown.wr_id);
    cq->ex.wr_id = cq->shown.wr_id;
    cq->ex.status = (enum ibv_wc_status)cq->shown.status;
    return 0;
}

static int start_poll(struct ibv_cq_ex *ex, struct ibv_poll_cq_attr *attr)
{
    struct alb_door_cq *cq = door_cq(ex);
    if (attr && attr->comp_mask)
        return EINVAL;
    if (alb_unlikely(alb_door_is_forked(alb_door_context(ex->context))))
        return ENODEV;
    alb_door_note_poll(ex->channel);
    alb_spinlock_take(&cq->poll_lock);
    int error = show(cq);
    if (error) {
        alb_spinlock_give(&cq->poll_lock);
        alb_door_drive(cq);
        alb_spinlock_take(&cq->poll_lock);
        error = show(cq);
    }
    if (error)
        alb_spinlock_give(&cq->poll_lock);
    else
        alb_spinlock_keep(&cq->poll_lock);
    return error;
}

static int next_poll(struct ibv_cq_ex *ex)
{
    return show(door_cq(ex));
}

static void end_poll(struct ibv_cq_ex *ex)
{
    alb_spinlock_give_kept(&door_cq(ex)->poll_lock);
}

static enum ibv_wc_opcode read_opcode(struct ibv_cq_ex *ex)
{
    return (enum ibv_wc_opcode)door_cq(ex)->shown.opcode;
}

static uint32_t read_vendor_err(struct ibv_cq_ex *ex)
{
    return door_cq(ex)->shown.vendor_err;
}

static uint32_t read_byte_len(struct ibv_cq_ex *ex)
{
    return door_cq(ex)->shown.byte_len;
}

static __be32 read_imm_data(struct ibv_cq_ex *ex)
{
    return door_cq(ex)->shown.imm_data;
}

static uint32_t read_qp_num(struct ibv_cq_ex *ex)
{
    return door_cq(ex)->shown.qpn;
}

static uint32_t read_src_qp(struct ibv_cq_ex *ex)
{
    return door_cq(ex)->shown.src_qpn;
}

static unsigned int read_wc_flags(struct ibv_cq_ex *ex)
{
    return door_cq(ex)->shown.flags;
}

// There are no LIDs on Ethernet.
static uint32_t read_slid(struct ibv_cq_ex *ex)
{
    (void)ex;
    return 0;
}

static uint8_t read_sl(struct ibv_cq_ex *ex)
{
    return door_cq(ex)->shown.sl;
}

static uint8_t read_dlid_path_bits(struct ibv_cq_ex *ex)
{
    return door_cq(ex)->shown.dlid_path_bits;
}

static uint64_t read_completion_ts(struct ibv_cq_ex *ex)
{
    return door_cq(ex)->shown.timestamp;
}

static uint64_t nanoseconds(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return (uint64_t)time.tv_sec * ALB_NS_PER_S + (uint64_t)time.tv_nsec;
}

// From the device's clock, which is the monotonic one, to the wall clock, both read at the same moment or nearly so.
static uint64_t wall_distance(uint64_t error_max)
{
    alb_time before, after;
    uint64_t wall;
    do {
        before = alb_device_now();
        wall = nanoseconds(CLOCK_REALTIME);
        after = alb_device_now();
    } while (after - before > error_max);
    return wall - after;
}

// The distance is looked at now, so a step of the wall clock shows at once. What differs by less is how long the two
// readings took: kept as it was, so that times of completions do not run backwards.
static uint64_t read_completion_wallclock(struct ibv_cq_ex *ex)
{
    const uint64_t step = ALB_NS_PER_MS;
    struct alb_door_cq *cq = door_cq(ex);
    uint64_t distance = wall_distance(step / 2);
    if (distance - cq->wall_distance + step > 2 * step)
        cq->wall_distance = distance;
    return cq->shown.timestamp + cq->wall_distance;
}

static int check_init(struct ibv_context *context, const struct ibv_cq_init_attr_ex *init)
{
    if (!init || init->cqe > INT32_MAX || init->comp_vector > INT32_MAX)
        return EINVAL;
    if (init->comp_mask & ~(uint32_t)(IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD))
        return EINVAL;
    if (init->wc_flags & ~flags_supported)
        return EOPNOTSUPP;
    // Single-threaded use needs no care; overrun cannot be ignored: the engine never overwrites a completion.
    if (init->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS && init->flags & ~(uint32_t)IBV_CREATE_CQ_ATTR_SINGLE_THREADED)
        return EOPNOTSUPP;
    if (init->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD) {
        const struct ibv_pd *domain = init->parent_domain;
        if (!domain || domain->context != context || !alb_door_pd(init->parent_domain)->base)
            return EINVAL;
    }
    return 0;
}

// A field that was not asked for keeps its NULL slot.
static void fill_slots(struct ibv_cq_ex *ex, uint64_t flags)
{
    ex->start_poll = start_poll;
    ex->next_poll = next_poll;
    ex->end_poll = end_poll;
    ex->read_opcode = read_opcode;
    ex->read_vendor_err = read_vendor_err;
    ex->read_wc_flags = read_wc_flags;
    if (flags & IBV_WC_EX_WITH_BYTE_LEN)
        ex->read_byte_len = read_byte_len;
    if (flags & IBV_WC_EX_WITH_IMM)
        ex->read_imm_data = read_imm_data;
    if (flags & IBV_WC_EX_WITH_QP_NUM)
        ex->read_qp_num = read_qp_num;
    if (flags & IBV_WC_EX_WITH_SRC_QP)
        ex->read_src_qp = read_src_qp;
    if (flags & IBV_WC_EX_WITH_SLID)
        ex->read_slid = read_slid;
    if (flags & IBV_WC_EX_WITH_SL)
        ex->read_sl = read_sl;
    if (flags & IBV_WC_EX_WITH_DLID_PATH_BITS)
        ex->read_dlid_path_bits = read_dlid_path_bits;
    if (flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP)
        ex->read_completion_ts = read_completion_ts;
    if (flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)
        ex->read_completion_wallclock_ns = read_completion_wallclock;
}

static struct ibv_cq_ex *create_cq_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *init)
{
    int error = check_init(context, init);
    if (error)
        return alb_door_fail(error);
    struct alb_door_cq *cq =
        alb_door_cq_create(context, (int)init->cqe, init->cq_context, init->channel, (int)init->comp_vector);
    if (!cq)
        return NULL;
    if (init->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD) {
        cq->parent_domain = alb_door_pd(init->parent_domain);
        alb_door_pd_get(init->parent_domain);
    }
    fill_slots(&cq->ex, init->wc_flags);
    return &cq->ex;
}

void alb_door_fill_cq_ex(struct verbs_context *verbs)
{
    verbs->create_cq_ex = create_cq_ex;
}
