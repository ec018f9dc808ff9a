// SPDX-License-Identifier: BSD-2-Clause
#include "fixture.h"

#include <sys/mman.h>
#include <unistd.h>

static void assert_refused(struct fixture *f, void *address, size_t length, int access, int error)
{
    errno = 0;
    assert_null(ibv_reg_mr(f->pd, address, length, access));
    assert_int_equal(errno, error);
}

static void reg_mr__access_flags(void **state)
{
    struct fixture *f = *state;
    static const int good[] = {
        0,
        IBV_ACCESS_REMOTE_READ,
        IBV_ACCESS_MW_BIND,
        IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE,
        IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_ATOMIC,
        IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_RELAXED_ORDERING,
        IBV_ACCESS_LOCAL_WRITE | 1 << 25, // optional, unknown: ignored
        IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_HUGETLB,
    };
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        struct ibv_mr *mr = ibv_reg_mr(f->pd, f->memory, 100, good[i]);
        assert_non_null(mr);
        assert_ptr_equal(mr->addr, f->memory);
        assert_int_equal(mr->length, 100);
        assert_int_equal(mr->lkey, mr->rkey);
        assert_int_equal(ibv_dereg_mr(mr), 0);
    }
    assert_refused(f, f->memory, 100, IBV_ACCESS_REMOTE_WRITE, EINVAL);
    assert_refused(f, f->memory, 100, IBV_ACCESS_REMOTE_ATOMIC, EINVAL);
    assert_refused(f, f->memory, 100, IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ, EINVAL);
    assert_refused(f, f->memory, 100, 1 << 12, EINVAL);
    assert_refused(f, f->memory, 100, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND, EOPNOTSUPP);
    assert_refused(f, f->memory, 100, IBV_ACCESS_REMOTE_READ | 1 << 8, EOPNOTSUPP); // IBV_ACCESS_FLUSH_GLOBAL
    assert_refused(f, f->memory, 100, 1 << 9, EOPNOTSUPP);                          // IBV_ACCESS_FLUSH_PERSISTENT
    assert_refused(f, f->memory, 100, 1 << 10, EINVAL);
}

static void reg_mr__memory(void **state)
{
    struct fixture *f = *state;
    uint8_t *page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_refused(f, page, 4096, IBV_ACCESS_LOCAL_WRITE, EFAULT);
    struct ibv_mr *mr = ibv_reg_mr(f->pd, page, 4096, IBV_ACCESS_REMOTE_READ);
    assert_non_null(mr);
    assert_int_equal(ibv_dereg_mr(mr), 0);
    // It does not go altogether: another thread's memory may come to where it was.
    assert_int_equal(mprotect(page, 4096, PROT_NONE), 0);
    assert_refused(f, page, 4096, 0, EFAULT);
    munmap(page, 4096);
    assert_refused(f, (void *)8192, 4096, 0, EFAULT); // where the kernel puts nothing
    assert_refused(f, NULL, 4096, 0, EFAULT);
    assert_refused(f, f->memory, SIZE_MAX, 0, EINVAL);
    assert_null(ibv_reg_mr(NULL, f->memory, 1, 0));
    assert_int_equal(errno, EINVAL);
}

static enum ibv_wc_status write_there(struct fixture *f, struct ibv_qp *qp, const struct ibv_mr *mr, uint32_t length)
{
    struct ibv_sge sge = fixture_sge(f, 0, length);
    struct ibv_send_wr wr = {.sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_RDMA_WRITE,
                             .send_flags = IBV_SEND_SIGNALED,
                             .wr.rdma = {.remote_addr = (uintptr_t)mr->addr, .rkey = mr->rkey}},
                       *bad;
    assert_int_equal(ibv_post_send(qp, &wr, &bad), 0);
    return fixture_wait(f->cq).status;
}

static void reg_mr__of_nothing(void **state)
{
    struct fixture *f = *state;
    uint8_t *const where[] = {f->memory + 8192, NULL};
    for (size_t i = 0; i < sizeof(where) / sizeof(where[0]); i++) {
        struct ibv_qp *a = fixture_qp(f, IBV_QPT_RC), *b = fixture_qp(f, IBV_QPT_RC);
        struct ibv_mr *mr = ibv_reg_mr(f->pd, where[i], 0, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
        assert_non_null(mr);
        assert_int_equal(mr->length, 0);
        fixture_connect(a, b);
        assert_int_equal(write_there(f, a, mr, 0), IBV_WC_SUCCESS);
        assert_int_equal(write_there(f, a, mr, 1), IBV_WC_REM_ACCESS_ERR);
        assert_int_equal(ibv_destroy_qp(a), 0);
        assert_int_equal(ibv_destroy_qp(b), 0);
        assert_int_equal(ibv_dereg_mr(mr), 0);
    }
}

// A peer that wrote there would end the process by SIGBUS.
static void reg_mr__behind_the_end_of_a_file(void **state)
{
    enum { PAGE = 4096 };
    struct fixture *f = *state;
    const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
    int fd = memfd_create("short", MFD_CLOEXEC);
    assert_true(fd >= 0);
    uint8_t *pages = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_ptr_not_equal(pages, MAP_FAILED);
    assert_refused(f, pages, 2 * PAGE, access, EFAULT);
    assert_int_equal(ftruncate(fd, PAGE), 0);
    assert_refused(f, pages, 2 * PAGE, access, EFAULT);
    struct ibv_mr *mr = ibv_reg_mr(f->pd, pages, PAGE, access);
    assert_non_null(mr);
    assert_int_equal(ibv_dereg_mr(mr), 0);
    munmap(pages, 2 * PAGE);
    close(fd);
}

// What a WRITE needs is the address that the region was given.
static void reg_mr_iova__used_by_peers(void **state)
{
    struct fixture *f = *state;
    struct ibv_qp *a = fixture_qp(f, IBV_QPT_RC), *b = fixture_qp(f, IBV_QPT_RC);
    struct ibv_mr *moved =
        ibv_reg_mr_iova(f->pd, f->memory + 8192, 4096, 0x1000, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    struct ibv_mr *zero = ibv_reg_mr(f->pd, f->memory + 16384, 4096,
                                     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_ZERO_BASED);
    assert_non_null(moved);
    assert_non_null(zero);
    fixture_connect(a, b);
    struct ibv_sge sge = fixture_sge(f, 0, 8);
    struct ibv_send_wr wr = {.sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_RDMA_WRITE,
                             .send_flags = IBV_SEND_SIGNALED,
                             .wr.rdma = {.remote_addr = 0x1000 + 16, .rkey = moved->rkey}},
                       *bad;
    memcpy(f->memory, "reflects", 8);
    assert_int_equal(ibv_post_send(a, &wr, &bad), 0);
    assert_int_equal(fixture_wait(f->cq).status, IBV_WC_SUCCESS);
    assert_memory_equal(f->memory + 8192 + 16, "reflects", 8);
    wr.wr.rdma.remote_addr = 24;
    wr.wr.rdma.rkey = zero->rkey;
    assert_int_equal(ibv_post_send(a, &wr, &bad), 0);
    assert_int_equal(fixture_wait(f->cq).status, IBV_WC_SUCCESS);
    assert_memory_equal(f->memory + 16384 + 24, "reflects", 8);
    assert_int_equal(ibv_destroy_qp(a), 0);
    assert_int_equal(ibv_destroy_qp(b), 0);
    assert_int_equal(ibv_dereg_mr(moved), 0);
    assert_int_equal(ibv_dereg_mr(zero), 0);
}

static void assert_not_changed(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *address, size_t length,
                               int access, int error)
{
    struct ibv_mr before = *mr;
    errno = 0;
    assert_int_equal(ibv_rereg_mr(mr, flags, pd, address, length, access), IBV_REREG_MR_ERR_INPUT);
    assert_int_equal(errno, error);
    assert_memory_equal(mr, &before, sizeof(before));
}

static void rereg_mr__each_part(void **state)
{
    struct fixture *f = *state;
    struct ibv_pd *other = ibv_alloc_pd(f->context);
    struct ibv_mr *mr = ibv_reg_mr(f->pd, f->memory, 4096, IBV_ACCESS_LOCAL_WRITE);
    assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, other, NULL, 0, 0), 0);
    assert_ptr_equal(mr->pd, other);
    assert_int_equal(ibv_dealloc_pd(other), EBUSY);
    assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_REMOTE_READ), 0);
    assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, f->memory + 4096, 100, 0), 0);
    assert_ptr_equal(mr->addr, f->memory + 4096);
    assert_int_equal(mr->length, 100);
    assert_int_equal(mr->lkey, mr->rkey);
    assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, f->pd, NULL, 0, 0), 0);
    assert_int_equal(ibv_dealloc_pd(other), 0);
    assert_int_equal(ibv_dereg_mr(mr), 0);
}

static void rereg_mr__refused(void **state)
{
    struct fixture *f = *state;
    struct ibv_mr *mr = ibv_reg_mr(f->pd, f->memory, 4096, IBV_ACCESS_LOCAL_WRITE);
    void *nothing = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_not_changed(mr, 0, NULL, NULL, 0, 0, EINVAL);
    assert_not_changed(mr, 8, NULL, NULL, 0, 0, EINVAL);
    assert_not_changed(mr, IBV_REREG_MR_CHANGE_PD, NULL, NULL, 0, 0, EINVAL);
    assert_not_changed(mr, IBV_REREG_MR_CHANGE_PD, f->pd, NULL, 0, IBV_ACCESS_LOCAL_WRITE, EINVAL);
    assert_not_changed(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_REMOTE_WRITE, EINVAL);
    assert_not_changed(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, NULL, 10, 0, EINVAL);
    assert_not_changed(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, f->memory, 0, 0, EINVAL);
    assert_not_changed(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, nothing, 10, 0, EFAULT);
    munmap(nothing, 4096);
    assert_int_equal(ibv_rereg_mr(NULL, IBV_REREG_MR_CHANGE_PD, f->pd, NULL, 0, 0), IBV_REREG_MR_ERR_INPUT);
    assert_int_equal(ibv_dereg_mr(mr), 0);
    assert_int_equal(ibv_dereg_mr(NULL), EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(reg_mr__access_flags),       FIXTURE_TEST(reg_mr__memory),
        FIXTURE_TEST(reg_mr__of_nothing),         FIXTURE_TEST(reg_mr__behind_the_end_of_a_file),
        FIXTURE_TEST(reg_mr_iova__used_by_peers), FIXTURE_TEST(rereg_mr__each_part),
        FIXTURE_TEST(rereg_mr__refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
