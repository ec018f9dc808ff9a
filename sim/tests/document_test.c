// SPDX-License-Identifier: BSD-2-Clause
// Scenario files as text: what is understood, and that what is not is said with its line.
#include "base/tests/test.h"
#include "sim/document.h"

#include <stdio.h>
#include <string.h>

static void parse(struct alb_document *document, const char *text)
{
    struct alb_complaint complaint = {0};
    bool is_good = alb_document_parse(document, "f", text, strlen(text), &complaint);
    if (!is_good)
        fail_msg("%s", complaint.text);
}

static const char *value_of(const struct alb_document *document, const char *section, const char *name, const char *key)
{
    const struct alb_document_entry *entry = alb_document_find(document, section, name, key);
    return entry ? entry->value : NULL;
}

static void alb_document_parse__sections_keys_comments(void **state)
{
    struct alb_document document;
    parse(&document, "# head\n"
                     "[network]\r\n"
                     "  topology =  fat-tree  # three tiers\n"
                     "file = a#b = c\n"
                     "\n"
                     "[workload  back.ground]\n"
                     "size=64K");
    assert_string_equal(value_of(&document, "network", "", "topology"), "fat-tree");
    assert_string_equal(value_of(&document, "network", "", "file"), "a#b = c");
    assert_string_equal(value_of(&document, "workload", "back.ground", "size"), "64K");
    assert_int_equal(alb_document_find(&document, "workload", "back.ground", "size")->line, 7);
    assert_int_equal(alb_document_find(&document, "network", "", "")->line, 2);
    assert_null(value_of(&document, "workload", "", "size"));
    alb_document_fini(&document);
    parse(&document, "");
    assert_int_equal(document.count, 0);
    alb_document_fini(&document);
}

static void alb_document_parse__a_byte_order_mark_is_no_text(void **state)
{
    struct alb_document document;
    parse(&document, "\xEF\xBB\xBF[network]\nhosts = 4\n");
    assert_string_equal(value_of(&document, "network", "", "hosts"), "4");
    alb_document_fini(&document);
}

static void assert_refused(const char *text, const char *expected)
{
    struct alb_document document;
    struct alb_complaint complaint = {0};
    assert_false(alb_document_parse(&document, "f", text, strlen(text), &complaint));
    assert_string_equal(complaint.text, expected);
    assert_int_equal(document.count, 0);
}

static void alb_document_parse__says_where_and_what_was_expected(void **state)
{
    assert_refused("[a]\nk\n", "f:2: \"k\" has no \"=\"; expected \"key = value\" or \"[section]\"");
    assert_refused("[a]\nk\033[2J\x7f", "f:2: \"k?[2J?\" has no \"=\"; expected \"key = value\" or \"[section]\"");
    assert_refused("[a]\nk\302\2332J", "f:2: \"k??2J\" has no \"=\"; expected \"key = value\" or \"[section]\"");
    assert_refused("k = 1\n", "f:1: a key before any section; expected \"[section]\"");
    assert_refused("\n[a\n", "f:2: a section has no end; expected \"[section]\" or \"[section name]\"");
    assert_refused("[a]\nk=1\nk=2", "f:3: k is there already, in line 2; expected each key once");
    assert_refused("[a]\n[b]\n[a]", "f:3: section \"a\" is there already, in line 1; expected each once");
    assert_refused(
        "[a]\n=1",
        "f:2: \"\" is no key; expected letters, digits, \"-\", \"_\", \".\", \",\", \":\" and \"/\", 63 at most");
    assert_refused("[]", "f:1: \"[]\" is no section; expected \"[section]\" or \"[section name]\", of letters, digits, "
                         "\"-\", \"_\", \".\", \",\", \":\" and \"/\", 63 at most");
    assert_refused("[a]\nk = \001", "f:2: the value of k is too long or not text; expected 399 characters at most");
    char text[600] = "[a]\nk=";
    memset(text + 6, 'x', 400);
    assert_refused(text, "f:2: the value of k is too long or not text; expected 399 characters at most");
    memset(text, 'y', 599);
    memcpy(text, "[a]\n", 4);
    text[580] = '=';
    struct alb_document document;
    struct alb_complaint complaint = {0};
    assert_false(alb_document_parse(&document, "f", text, 599, &complaint));
}

static void alb_document_parse__has_an_end(void **state)
{
    static char text[16 * (ALB_DOCUMENT_ENTRIES_MAX + 1)];
    char *at = text;
    for (int i = 0; i <= ALB_DOCUMENT_ENTRIES_MAX; i++)
        at += sprintf(at, "[s %d]\n", i);
    assert_refused(text, "f:2049: expected 2048 sections and keys at most");
}

static void alb_document_set__replaces_or_adds(void **state)
{
    struct alb_document document, copy;
    struct alb_complaint complaint = {0};
    parse(&document, "[a]\nk=1\n[w x]\nk=2\n");
    alb_document_copy(&copy, &document);
    assert_true(alb_document_set(&document, "a.k= 7", &complaint));
    assert_true(alb_document_set(&document, "w.x.k=8", &complaint));
    assert_true(alb_document_set(&document, "h.0..3.k=9=9", &complaint));
    assert_true(alb_document_set(&document, "expect.v:w.fct_max=<=1ns", &complaint));
    assert_true(alb_document_set(&document, "variant.v.w.x.k=3", &complaint));
    assert_string_equal(value_of(&document, "a", "", "k"), "7");
    assert_string_equal(value_of(&document, "w", "x", "k"), "8");
    assert_string_equal(value_of(&document, "h", "0..3", "k"), "9=9");
    assert_string_equal(value_of(&document, "expect", "", "v:w.fct_max"), "<=1ns");
    assert_string_equal(value_of(&document, "variant", "v", "w.x.k"), "3");
    assert_string_equal(value_of(&copy, "a", "", "k"), "1");
    assert_null(value_of(&copy, "h", "0..3", "k"));
    static const char *const bad[] = {"", "a", "a=1", "a.=1", ".k=1", "a..k=1", "a.k"};
    for (size_t i = 0; i < ALB_COUNT(bad); i++) {
        complaint.text[0] = '\0';
        bool is_good = alb_document_set(&document, bad[i], &complaint);
        if (is_good)
            fail_msg("\"%s\" was taken", bad[i]);
        assert_memory_equal(complaint.text, "--set: ", 7);
    }
    alb_document_fini(&document);
    alb_document_fini(&copy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alb_document_parse__sections_keys_comments),
        cmocka_unit_test(alb_document_parse__a_byte_order_mark_is_no_text),
        cmocka_unit_test(alb_document_parse__says_where_and_what_was_expected),
        cmocka_unit_test(alb_document_parse__has_an_end),
        cmocka_unit_test(alb_document_set__replaces_or_adds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
