// SPDX-License-Identifier: BSD-2-Clause
// Scenario files, and the data files of sizes: whatever they hold is understood or refused with a complaint that names
// the place.
//
// Input: the text of a scenario. It is also taken as a file of sizes, and a word of it as --set.
#include "fuzz/fuzz.h"

#include "sim/expect.h"
#include "sim/scenario.h"
#include "sim/sizes.h"

#include <stdlib.h>
#include <string.h>

static void check_complaint(const struct alb_complaint *complaint)
{
    alb_assert(complaint->text[0] != '\0' && strlen(complaint->text) < ALB_COMPLAINT_MAX);
}

static void read_scenario(const struct alb_document *document, const char *variant)
{
    static struct alb_scenario scenario;
    struct alb_complaint complaint = {0};
    if (!alb_scenario_read(&scenario, document, variant, "/nonexistent", &complaint)) {
        check_complaint(&complaint);
        return;
    }
    struct alb_engine_config engine = scenario.engine;
    alb_scenario_change_host(&scenario, 3, &engine);
    alb_scenario_fini(&scenario);
}

static void read_document(const char *text, size_t length)
{
    struct alb_document document;
    struct alb_complaint complaint = {0};
    if (!alb_document_parse(&document, "file", text, length, &complaint)) {
        check_complaint(&complaint);
        return;
    }
    complaint.text[0] = '\0';
    if (document.count && !alb_document_set(&document, document.entries[document.count - 1].value, &complaint))
        check_complaint(&complaint);
    complaint.text[0] = '\0';
    if (!alb_expect_check(&document, &complaint))
        check_complaint(&complaint);
    read_scenario(&document, NULL);
    if (alb_scenario_variant(&document, 0))
        read_scenario(&document, alb_scenario_variant(&document, 0));
    alb_document_fini(&document);
}

static void read_sizes(const char *text, size_t length)
{
    struct alb_sizes sizes;
    struct alb_complaint complaint = {0};
    struct alb_prng prng;
    if (!alb_sizes_parse(&sizes, "file", text, length, &complaint)) {
        check_complaint(&complaint);
        return;
    }
    alb_prng_init(&prng, length);
    for (uint32_t i = 0; i < 16; i++)
        alb_assert(alb_sizes_draw(&sizes, &prng) <= ALB_MAX(sizes.points[sizes.count - 1].bytes, 1ull));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size ? size : 1); // as long as it is, so that a sanitizer sees what is read behind it
    if (!text)
        abort();
    if (size)
        memcpy(text, data, size);
    read_document(text, size);
    read_sizes(text, size);
    free(text);
    return 0;
}
