// SPDX-License-Identifier: BSD-2-Clause
// By their names in the library: headers of older releases do not have them.
#include "fixture.h"

#include <dlfcn.h>

struct ibv_buf;

static void *name(const char *symbol, const char *node)
{
    void *found = dlvsym(RTLD_DEFAULT, symbol, node);
    assert_non_null(found);
    return found;
}

static void buffer__is_registered_within_its_bounds(void **state)
{
    struct fixture *f = *state;
    struct ibv_buf *buffer = NULL;
    void *(*alloc)(struct ibv_pd *, size_t, struct ibv_buf **) = name("ibv_alloc_buf", "IBVERBS_1.17");
    void (*release)(struct ibv_buf *) = name("ibv_free_buf", "IBVERBS_1.17");
    struct ibv_mr *(*reg)(struct ibv_pd *, struct ibv_buf *, void *, size_t, int) =
        name("ibv_reg_buf_mr", "IBVERBS_1.17");
    int (*export_fd)(struct ibv_buf *) = name("ibv_export_buf_dmabuf_fd", "IBVERBS_1.18");
    uint8_t *memory = alloc(f->pd, 5000, &buffer);
    assert_non_null(memory);
    assert_non_null(buffer);
    assert_int_equal((uintptr_t)memory % 4096, 0);
    struct ibv_mr *mr = reg(f->pd, buffer, memory + 1000, 4000, IBV_ACCESS_LOCAL_WRITE);
    assert_non_null(mr);
    assert_ptr_equal(mr->addr, memory + 1000);
    assert_int_equal(mr->length, 4000);
    errno = 0;
    assert_null(reg(f->pd, buffer, memory + 1000, 4001, IBV_ACCESS_LOCAL_WRITE));
    assert_int_equal(errno, EINVAL);
    assert_null(reg(f->pd, buffer, memory - 1, 1, IBV_ACCESS_LOCAL_WRITE));
    assert_int_equal(export_fd(buffer), -1);
    assert_int_equal(errno, ENODATA);
    assert_int_equal(ibv_dereg_mr(mr), 0);
    release(buffer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(buffer__is_registered_within_its_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
