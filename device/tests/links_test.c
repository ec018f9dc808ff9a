// SPDX-License-Identifier: BSD-2-Clause
#include "device/links.h"

#include "base/tests/test.h"
#include "device/tests/network_namespace.h"

enum { MANY = 5000 }; // changes, more than the socket's buffer holds

static bool hears_changes(void)
{
    struct alb_links links;
    alb_links_open(&links);
    bool before = alb_links_took_news(&links);
    network_namespace_set_link("lo", true);
    bool up = alb_links_took_news(&links), after_up = alb_links_took_news(&links);
    network_namespace_set_link("lo", false);
    bool down = alb_links_took_news(&links);
    alb_links_close(&links);
    return !before && up && !after_up && down && !alb_links_took_news(&links);
}

static void took_news__once_after_a_change(void **state)
{
    (void)state;
    assert_true(network_namespace_run(hears_changes));
}

static bool hears_of_many(void)
{
    struct alb_links links;
    alb_links_open(&links);
    for (int i = 0; i < MANY; i++)
        network_namespace_set_link("lo", i % 2 == 0);
    int looks = 0;
    while (alb_links_took_news(&links))
        looks++;
    network_namespace_set_link("lo", true);
    bool hears_on = alb_links_took_news(&links);
    alb_links_close(&links);
    return looks >= 1 && looks <= 2 && hears_on; // the second one after the loss has been told
}

static void took_news__though_messages_were_lost(void **state)
{
    (void)state;
    assert_true(network_namespace_run(hears_of_many));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(took_news__once_after_a_change),
        cmocka_unit_test(took_news__though_messages_were_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
