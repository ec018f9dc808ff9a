// SPDX-License-Identifier: BSD-2-Clause
#include "fixture.h"

#include "plugins/verbs/door.h"

#include <errno.h>
#include <linux/ioctl.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

enum { PAGE = 4096 };

static unsigned queries; // of the kernel for a mapping
static bool is_old;      // it does not know them

int __real_ioctl(int fd, unsigned long request, void *argument);
// Visible: in a build with a sanitizer the linker finds a shared library that refers to it.
__attribute__((visibility("default"))) int __wrap_ioctl(int fd, unsigned long request, ...);

int __wrap_ioctl(int fd, unsigned long request, ...)
{
    va_list list;
    va_start(list, request);
    void *argument = va_arg(list, void *);
    va_end(list);
    if (_IOC_TYPE(request) != 'f')
        return __real_ioctl(fd, request, argument);
    queries++;
    if (!is_old)
        return __real_ioctl(fd, request, argument);
    errno = ENOTTY;
    return -1;
}

static int any_kernel(void **state)
{
    is_old = false;
    queries = 0;
    return 0;
}

static int old_kernel(void **state)
{
    is_old = true;
    queries = 0;
    return 0;
}

static int was_asked(void **state)
{
    return queries > 0 ? 0 : -1;
}

// Four pages: writable, read-only, writable, not accessible.
static uint8_t *four_pages(void)
{
    uint8_t *pages = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(pages, MAP_FAILED);
    assert_int_equal(mprotect(pages + PAGE, PAGE, PROT_READ), 0);
    assert_int_equal(mprotect(pages + 3 * PAGE, PAGE, PROT_NONE), 0);
    return pages;
}

static void check_mapped__access(void **state)
{
    uint8_t *pages = four_pages();
    assert_int_equal(alb_door_check_mapped(pages, PAGE, true), 0);
    assert_int_equal(alb_door_check_mapped(pages + 1, 1, true), 0);
    assert_int_equal(alb_door_check_mapped(pages, 3 * PAGE, false), 0);
    assert_int_equal(alb_door_check_mapped(pages, 3 * PAGE, true), EFAULT);
    assert_int_equal(alb_door_check_mapped(pages + PAGE, 1, true), EFAULT);
    assert_int_equal(alb_door_check_mapped(pages + PAGE - 1, 2, true), EFAULT);
    assert_int_equal(alb_door_check_mapped(pages + 2 * PAGE, 2 * PAGE, false), EFAULT);
    assert_int_equal(alb_door_check_mapped(pages + 3 * PAGE, 1, false), EFAULT);
    munmap(pages, 4 * PAGE);
}

static void check_mapped__hole(void **state)
{
    uint8_t *pages = four_pages();
    assert_int_equal(munmap(pages + PAGE, PAGE), 0);
    assert_int_equal(alb_door_check_mapped(pages, PAGE, true), 0);
    assert_int_equal(alb_door_check_mapped(pages + 2 * PAGE, PAGE, true), 0);
    assert_int_equal(alb_door_check_mapped(pages, 3 * PAGE, false), EFAULT);
    assert_int_equal(alb_door_check_mapped(pages + PAGE, 1, false), EFAULT);
    munmap(pages, 4 * PAGE);
}

static void check_mapped__nonsense(void **state)
{
    assert_int_equal(alb_door_check_mapped(NULL, 1, false), EFAULT);
    assert_int_equal(alb_door_check_mapped((void *)0x10, 4096, false), EFAULT);
    assert_int_equal(alb_door_check_mapped((void *)(UINTPTR_MAX - 100), 50, false), EFAULT);
}

// The map is longer than what is read of it at once, and reserved memory needs no pages to be there.
static void check_mapped__long_map(void **state)
{
    enum { COUNT = 400 };
    uint8_t *pages[COUNT];
    for (int i = 0; i < COUNT; i++) { // neighbours differ, so that they stay separate lines
        pages[i] = mmap(NULL, PAGE, i % 2 ? PROT_READ : PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        assert_ptr_not_equal(pages[i], MAP_FAILED);
    }
    for (int i = 0; i < COUNT; i++)
        assert_int_equal(alb_door_check_mapped(pages[i], PAGE, true), i % 2 ? EFAULT : 0);
    for (int i = 0; i < COUNT; i++)
        munmap(pages[i], PAGE);

    size_t huge = (size_t)1 << 36;
    uint8_t *reserved = mmap(NULL, huge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (reserved != MAP_FAILED) {
        assert_int_equal(alb_door_check_mapped(reserved, huge, true), 0);
        munmap(reserved, huge);
    }
}

// A file of two pages, the second a hole, and a mapping that goes on behind its end, where there is no memory.
static void check_mapped__short_file(void **state)
{
    const int ways[] = {MAP_SHARED, MAP_PRIVATE};
    int fd = memfd_create("short", MFD_CLOEXEC);
    assert_true(fd >= 0);
    for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
        assert_int_equal(ftruncate(fd, 0), 0);
        uint8_t *pages = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, ways[i], fd, 0);
        assert_ptr_not_equal(pages, MAP_FAILED);
        assert_int_equal(alb_door_check_mapped(pages, 1, true), EFAULT);
        assert_int_equal(ftruncate(fd, PAGE + 1), 0);
        assert_int_equal(alb_door_check_mapped(pages, 2 * PAGE, true), 0);
        assert_int_equal(alb_door_check_mapped(pages + PAGE - 1, 2, false), 0);
        assert_int_equal(alb_door_check_mapped(pages, 2 * PAGE + 1, false), EFAULT);
        assert_int_equal(alb_door_check_mapped(pages + 3 * PAGE, PAGE, true), EFAULT);
        munmap(pages, 4 * PAGE);
    }
    close(fd);
}

// The file is short in the first of two mappings.
static void check_mapped__short_file_before_memory(void **state)
{
    int fd = memfd_create("short", MFD_CLOEXEC);
    uint8_t *pages = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(pages, MAP_FAILED);
    assert_ptr_equal(mmap(pages, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0), pages);
    assert_int_equal(ftruncate(fd, PAGE), 0);
    assert_int_equal(alb_door_check_mapped(pages, 4 * PAGE, true), EFAULT);
    assert_int_equal(alb_door_check_mapped(pages, PAGE, true), 0);
    assert_int_equal(alb_door_check_mapped(pages + 2 * PAGE, 2 * PAGE, true), 0);
    assert_int_equal(ftruncate(fd, 2 * PAGE), 0);
    assert_int_equal(alb_door_check_mapped(pages, 4 * PAGE, true), 0);
    munmap(pages, 4 * PAGE);
    close(fd);
}

// Then nothing is known of the memory.
static void check_mapped__without_descriptors(void **state)
{
    struct rlimit before, none;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = (struct rlimit){.rlim_cur = 0, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    int error = alb_door_check_mapped(&before, sizeof(before), true);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(error, EMFILE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(check_mapped__without_descriptors),
        cmocka_unit_test_setup_teardown(check_mapped__access, any_kernel, was_asked),
        cmocka_unit_test_setup_teardown(check_mapped__hole, any_kernel, was_asked),
        cmocka_unit_test_setup_teardown(check_mapped__nonsense, any_kernel, was_asked),
        cmocka_unit_test_setup_teardown(check_mapped__long_map, any_kernel, was_asked),
        cmocka_unit_test_setup_teardown(check_mapped__short_file, any_kernel, was_asked),
        cmocka_unit_test_setup_teardown(check_mapped__short_file_before_memory, any_kernel, was_asked),
        cmocka_unit_test_setup_teardown(check_mapped__access, old_kernel, was_asked),
        cmocka_unit_test_setup_teardown(check_mapped__hole, old_kernel, was_asked),
        cmocka_unit_test_setup_teardown(check_mapped__nonsense, old_kernel, was_asked),
        cmocka_unit_test_setup_teardown(check_mapped__long_map, old_kernel, was_asked),
        cmocka_unit_test_setup_teardown(check_mapped__short_file, old_kernel, was_asked),
        cmocka_unit_test_setup_teardown(check_mapped__short_file_before_memory, old_kernel, was_asked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
