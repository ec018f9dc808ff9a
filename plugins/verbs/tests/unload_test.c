// SPDX-License-Identifier: BSD-2-Clause
// A program that has the library from dlopen(3), and gives it back with a device open.
#include "base/tests/test.h"

#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <stdio.h>

struct library {
    void *handle;
    struct ibv_device **(*get_device_list)(int *count);
    void (*free_device_list)(struct ibv_device **list);
    struct ibv_context *(*open_device)(struct ibv_device *device);
    int (*query_gid)(struct ibv_context *context, uint8_t port, int index, union ibv_gid *gid);
    int (*close_device)(struct ibv_context *context);
};

static void *find(void *handle, const char *name)
{
    void *symbol = dlsym(handle, name);
    assert_non_null(symbol);
    return symbol;
}

static struct library load(void)
{
    void *handle = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    assert_non_null(handle);
    return (struct library){
        .handle = handle,
        .get_device_list = find(handle, "ibv_get_device_list"),
        .free_device_list = find(handle, "ibv_free_device_list"),
        .open_device = find(handle, "ibv_open_device"),
        .query_gid = find(handle, "ibv_query_gid"),
        .close_device = find(handle, "ibv_close_device"),
    };
}

// Its sockets would stay bound, and its thread end: others that want its port, or are relayed by it, were unreachable.
static void dlclose__leaves_an_open_device_alone(void **state)
{
    struct library library = load();
    struct ibv_device **list = library.get_device_list(NULL);
    struct ibv_context *context = library.open_device(list[0]);
    union ibv_gid gid;
    assert_non_null(context);
    assert_int_equal(dlclose(library.handle), 0);
    void *kept = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
    assert_non_null(kept);
    dlclose(kept);
    assert_int_equal(library.query_gid(context, 1, 0, &gid), 0);

    library = load();
    struct ibv_context *second = library.open_device(list[0]);
    assert_non_null(second);
    assert_int_equal(library.close_device(context), 0);
    assert_int_equal(library.query_gid(second, 1, 0, &gid), 0);
    assert_int_equal(library.close_device(second), 0);
    library.free_device_list(list);
    dlclose(library.handle);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dlclose__leaves_an_open_device_alone),
    };
    return cmocka_run_group_tests_name("unload", tests, NULL, NULL);
}
