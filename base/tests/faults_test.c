// SPDX-License-Identifier: BSD-2-Clause
// The text, there and back and refused; the frequencies of verdicts, their repeatability and their independence.
#include "base/faults.h"
#include "base/tests/test.h"

#include <string.h>

enum { DATAGRAMS = 200000, BYTES = 1000 };

static struct alb_faults_spec parsed(const char *text)
{
    char error[ALB_FAULTS_ERROR_MAX] = "";
    struct alb_faults_spec spec;
    memset(&spec, 0xaa, sizeof(spec));
    assert_true(alb_faults_parse(text, &spec, error, sizeof(error)));
    assert_string_equal(error, "");
    return spec;
}

static void assert_spec_equal(struct alb_faults_spec a, struct alb_faults_spec b)
{
    assert_int_equal(a.loss, b.loss);
    assert_int_equal(a.duplicate, b.duplicate);
    assert_int_equal(a.reorder, b.reorder);
    assert_int_equal(a.corrupt, b.corrupt);
    assert_int_equal(a.delay_ns_min, b.delay_ns_min);
    assert_int_equal(a.delay_ns_max, b.delay_ns_max);
    assert_memory_equal(&a.corruption, &b.corruption, sizeof(a.corruption));
}

static void alb_faults_parse__all_of_it(void **state)
{
    assert_spec_equal(parsed("loss=1%,duplicate=0.1%,reorder=2%,corrupt=0.01%,delay=50us..1ms"),
                      (struct alb_faults_spec){10000000, 1000000, 20000000, 100000, 50000, 1000000, {{0}}});
    assert_spec_equal(parsed("delay=7us,loss=1e-5"), (struct alb_faults_spec){10000, 0, 0, 0, 7000, 7000, {{0}}});
    assert_spec_equal(parsed("loss=100%"), (struct alb_faults_spec){.loss = 1000000000});
    assert_spec_equal(parsed(""), (struct alb_faults_spec){0});
    assert_spec_equal(parsed("none"), (struct alb_faults_spec){0});
    assert_spec_equal(parsed("loss=0,delay=0"), (struct alb_faults_spec){0});
    struct alb_faults_spec spec = parsed("delay=0..10s");
    assert_false(alb_faults_spec_is_none(&spec));
    assert_false(alb_faults_spec_spares_datagrams(&spec));
    assert_spec_equal(parsed("stale=7%,misplace=6%,copy=5%,stage=4%,packet=3%,read=2%,source=1%"),
                      (struct alb_faults_spec){
                          .corruption = {{10000000, 20000000, 30000000, 40000000, 50000000, 60000000, 70000000}}});
    spec = parsed("copy=1%");
    assert_false(alb_faults_spec_is_none(&spec));
    assert_true(alb_faults_spec_spares_datagrams(&spec));
    spec = parsed("none");
    assert_true(alb_faults_spec_is_none(&spec));
}

static void alb_faults_parse__refuses_with_a_reason(void **state)
{
    static const struct {
        const char *text;
        const char *reason;
    } bad[] = {
        {"lose=1%", "\"lose\" is no fault; accepted: loss, duplicate, reorder, corrupt"},
        {"loss", "\"loss\" has no \"=\"; accepted: loss"},
        {"none,loss=1%", "\"none\" has no \"=\""},
        {"loss=1%,", "\"\" has no \"=\""},
        {",loss=1%", "\"\" has no \"=\""},
        {"loss=1%,,delay=1ms", "\"\" has no \"=\""},
        {"loss=1%, delay=1ms", "\" delay\" is no fault"},
        {"loss=1%,loss=1%", "\"loss\" is given twice"},
        {"loss=0,loss=1%", "\"loss\" is given twice"},
        {"delay=0,delay=1ms", "\"delay\" is given twice"},
        {"loss=101%", "loss: \"101%\" is not a probability"},
        {"corrupt=1", "corrupt: \"1\" is ambiguous"},
        {"loss=", "loss: \"\" is not a probability"},
        {"delay=1ms..1us", "delay: \"1ms..1us\" runs backwards"},
        {"delay=1", "delay: \"1\" is not a duration"},
        {"delay=1ms..11s", "delay: \"1ms..11s\" is longer than 10s"},
        {"Loss=1%", "\"Loss\" is no fault"},
        {"stale=1ms", "stale: \"1ms\" is not a probability"},
    };
    for (size_t i = 0; i < ALB_COUNT(bad); i++) {
        char error[ALB_FAULTS_ERROR_MAX] = "";
        struct alb_faults_spec spec = {.loss = 77};
        assert_false(alb_faults_parse(bad[i].text, &spec, error, sizeof(error)));
        assert_memory_equal(error, bad[i].reason, strlen(bad[i].reason));
        assert_spec_equal(spec, (struct alb_faults_spec){.loss = 77});
        assert_false(alb_faults_parse(bad[i].text, &spec, NULL, 0));
    }
    char text[500], error[ALB_FAULTS_ERROR_MAX];
    struct alb_faults_spec spec;
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    assert_false(alb_faults_parse(text, &spec, error, sizeof(error)));
    assert_non_null(strstr(error, "too long"));
}

static void alb_faults_format__round_trip(void **state)
{
    static const char longest[] =
        "loss=99.9999999%,duplicate=99.9999999%,reorder=99.9999999%,corrupt=99.9999999%,source=99.9999999%,"
        "read=99.9999999%,packet=99.9999999%,stage=99.9999999%,copy=99.9999999%,misplace=99.9999999%,"
        "stale=99.9999999%,delay=9999999998ns..10s";
    static const char *const texts[] = {
        "none",
        "loss=1%",
        "delay=7us",
        "delay=0..1ms",
        "corrupt=0.0000001%,delay=10s",
        "loss=1%,duplicate=0.1%,reorder=1%,corrupt=0.01%,delay=50us..1ms",
        longest,
    };
    for (size_t i = 0; i < ALB_COUNT(texts); i++) {
        char text[ALB_FAULTS_TEXT_MAX];
        struct alb_faults_spec spec = parsed(texts[i]);
        assert_ptr_equal(alb_faults_format(&spec, text), text);
        assert_string_equal(text, texts[i]);
    }
}

static struct alb_faults faults_of(const char *text, uint64_t seed)
{
    struct alb_faults faults;
    struct alb_faults_spec spec = parsed(text);
    alb_faults_init(&faults, &spec, seed);
    return faults;
}

static void alb_faults_decide__none_does_nothing(void **state)
{
    struct alb_faults faults = faults_of("none", 1);
    for (int i = 0; i < 1000; i++) {
        struct alb_fault_verdict v = alb_faults_decide(&faults, BYTES);
        assert_true(!v.is_lost && !v.is_corrupt && v.copies == 1 && v.pass == 0);
        assert_int_equal(v.delay_ns[0] + v.delay_ns[1] + v.corrupt_bit, 0);
    }
    assert_int_equal(faults.datagrams, 1000);
    assert_int_equal(faults.lost + faults.duplicated + faults.reordered + faults.corrupted + faults.delayed, 0);
}

static void alb_faults_decide__frequencies_and_counters(void **state)
{
    struct alb_faults faults = faults_of("loss=10%,duplicate=5%,reorder=2%,corrupt=1%,delay=50us..1ms", 2);
    uint64_t lost = 0, duplicated = 0, corrupted = 0, delay_sum_ns = 0;
    uint64_t passes[ALB_FAULTS_PASS_MAX + 1] = {0}, corrupt_bytes[10] = {0};
    for (int i = 0; i < DATAGRAMS; i++) {
        struct alb_fault_verdict v = alb_faults_decide(&faults, BYTES);
        lost += v.is_lost;
        assert_true(v.is_lost ? v.copies == 0 && !v.is_corrupt && v.pass == 0 : v.copies == 1 || v.copies == 2);
        duplicated += v.copies == 2;
        assert_true(v.pass <= ALB_FAULTS_PASS_MAX);
        passes[v.pass]++;
        if (v.is_corrupt) {
            corrupted++;
            assert_true(v.corrupt_bit < BYTES * 8);
            corrupt_bytes[v.corrupt_bit / 800]++;
        }
        for (int copy = 0; copy < v.copies; copy++)
            assert_in_range(v.delay_ns[copy], 50000, 1000000);
        delay_sum_ns += v.delay_ns[0];
    }
    assert_in_range(lost, 19000, 21000);
    assert_in_range(duplicated, 8500, 9500); // 5 % of the 180,000 that are not lost
    assert_in_range(corrupted, 1600, 2000);
    for (int i = 1; i <= ALB_FAULTS_PASS_MAX; i++)
        assert_in_range(passes[i], 780, 1020); // a quarter of 2 % of 180,000
    for (int i = 0; i < 10; i++)
        assert_in_range(corrupt_bytes[i], 120, 240);
    assert_in_range(delay_sum_ns / (DATAGRAMS - lost), 520000, 530000);

    assert_int_equal(faults.datagrams, DATAGRAMS);
    assert_int_equal(faults.lost, lost);
    assert_int_equal(faults.duplicated, duplicated);
    assert_int_equal(faults.corrupted, corrupted);
    assert_int_equal(faults.reordered, passes[1] + passes[2] + passes[3] + passes[4]);
    assert_int_equal(faults.delayed, DATAGRAMS - lost);
}

static void alb_faults_decide__same_seed_same_verdicts(void **state)
{
    static const char text[] = "loss=10%,duplicate=10%,reorder=10%,corrupt=10%,delay=1us..9us";
    struct alb_faults a = faults_of(text, 3), b = faults_of(text, 3), c = faults_of(text, 4);
    int differences = 0;
    for (uint32_t i = 0; i < 1000; i++) {
        struct alb_fault_verdict va, vb, vc;
        va = alb_faults_decide(&a, i % 100);
        vb = alb_faults_decide(&b, i % 100);
        vc = alb_faults_decide(&c, i % 100);
        assert_true(va.is_lost == vb.is_lost && va.copies == vb.copies && va.is_corrupt == vb.is_corrupt);
        assert_true(va.corrupt_bit == vb.corrupt_bit && va.pass == vb.pass);
        assert_true(va.delay_ns[0] == vb.delay_ns[0] && va.delay_ns[1] == vb.delay_ns[1]);
        differences += va.is_lost != vc.is_lost;
    }
    assert_true(differences > 50);
}

static void alb_faults_decide__options_do_not_disturb_each_other(void **state)
{
    struct alb_faults alone = faults_of("loss=10%", 5),
                      all = faults_of("loss=10%,duplicate=10%,reorder=10%,delay=1ms", 5);
    struct alb_faults corrupting = faults_of("corrupt=10%", 5), more = faults_of("corrupt=10%,delay=1us..2us", 5);
    for (int i = 0; i < 2000; i++) {
        assert_int_equal(alb_faults_decide(&alone, BYTES).is_lost, alb_faults_decide(&all, BYTES).is_lost);
        struct alb_fault_verdict v = alb_faults_decide(&corrupting, BYTES), w = alb_faults_decide(&more, BYTES);
        assert_int_equal(v.is_corrupt, w.is_corrupt);
        assert_int_equal(v.corrupt_bit, w.corrupt_bit);
    }
}

static void alb_faults_decide__corners(void **state)
{
    struct alb_faults faults = faults_of("corrupt=100%,duplicate=100%,reorder=100%,delay=3us", 6);
    uint32_t corrupt_bit_max = 0;
    for (int i = 0; i < 100; i++) {
        struct alb_fault_verdict v = alb_faults_decide(&faults, 0);
        assert_false(v.is_corrupt); // there is no bit to flip
        assert_int_equal(v.copies, 2);
        assert_in_range(v.pass, 1, ALB_FAULTS_PASS_MAX);
        assert_int_equal(v.delay_ns[0], 3000);
        assert_int_equal(v.delay_ns[1], 3000);
        v = alb_faults_decide(&faults, 1);
        assert_true(v.is_corrupt && v.corrupt_bit < 8);
        v = alb_faults_decide(&faults, 65535);
        assert_true(v.is_corrupt && v.corrupt_bit < 8 * 65535);
        corrupt_bit_max = ALB_MAX(corrupt_bit_max, v.corrupt_bit);
    }
    assert_true(corrupt_bit_max > 7 * 65535);
    faults = faults_of("loss=100%,duplicate=100%", 7);
    for (int i = 0; i < 100; i++) {
        struct alb_fault_verdict v = alb_faults_decide(&faults, BYTES);
        assert_true(v.is_lost && v.copies == 0);
    }
    assert_int_equal(faults.lost, 100);
    assert_int_equal(faults.duplicated, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alb_faults_parse__all_of_it),
        cmocka_unit_test(alb_faults_parse__refuses_with_a_reason),
        cmocka_unit_test(alb_faults_format__round_trip),
        cmocka_unit_test(alb_faults_decide__none_does_nothing),
        cmocka_unit_test(alb_faults_decide__frequencies_and_counters),
        cmocka_unit_test(alb_faults_decide__same_seed_same_verdicts),
        cmocka_unit_test(alb_faults_decide__options_do_not_disturb_each_other),
        cmocka_unit_test(alb_faults_decide__corners),
    };
    return cmocka_run_group_tests_name("faults", tests, NULL, NULL);
}
