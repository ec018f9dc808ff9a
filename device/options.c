// SPDX-License-Identifier: BSD-2-Clause
// Device options from the environment.
#include "base/text.h"
#include "device/address.h"
#include "device/clock.h"
#include "device/dad.h"
#include "device/device.h"
#include "device/directory.h"
#include "engine/transaction.h"

#include <errno.h>
#include <net/if.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    PARAMETERS_MAX = 420, // room for all of a policy, with what they can be
};

#define DAD_NS_MAX (3 * ALB_NS_PER_S) // it takes 1 to 2 s if nothing is lost

static bool is_known(const struct alb_device_options *options, const struct alb_addr *addr)
{
    for (uint32_t i = 0; i < options->address_count; i++) {
        if (alb_addr_equals(&options->addresses[i], addr))
            return true;
    }
    return false;
}

static int add_address(struct alb_device_options *options, const struct alb_addr *addr, char *error, size_t error_size)
{
    if (is_known(options, addr))
        return 0;
    if (options->address_count == ALB_DEVICE_ADDRESSES_MAX) {
        snprintf(error, error_size, "ALBEDO_NET: more than %d addresses", ALB_DEVICE_ADDRESSES_MAX);
        return EINVAL;
    }
    options->addresses[options->address_count++] = *addr;
    return 0;
}

#define LOCAL_TO_LINK \
    "a link-local address says nothing without its interface, and a device's addresses do not name one"

// What is wrong with a name that stands for no address.
static const char *trouble_with(const char *name)
{
    if (strchr(name, '%'))
        return "cannot be used: " LOCAL_TO_LINK;
    if (strchr(name, '/'))
        return "is to be an address without the length of its prefix";
    if (if_nametoindex(name) != 0)
        return "is an interface without an address of IPv4, or of IPv6 that is not link-local";
    return "is neither an IP address nor an interface; say for example 10.0.0.1, fd99::1 or eth0, several separated by "
           "commas";
}

__attribute__((format(printf, 2, 3))) static void leave_out(struct alb_device_options *options, const char *format, ...)
{
    size_t length = strlen(options->left_out);
    va_list arguments;
    if (length > 0)
        snprintf(options->left_out + length, sizeof(options->left_out) - length, "; ");
    length = strlen(options->left_out);
    va_start(arguments, format);
    vsnprintf(options->left_out + length, sizeof(options->left_out) - length, format, arguments);
    va_end(arguments);
}

// In a sandbox there may be none, though interfaces have addresses of IPv6.
static bool has_ipv6_sockets(void)
{
    int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool is_refused = fd < 0 && (errno == EAFNOSUPPORT || errno == EPERM || errno == EACCES);
    if (fd >= 0)
        close(fd);
    return !is_refused;
}

// Why an address cannot be bound yet, or ever, though the host has it; NULL: it can.
static const char *dad_trouble(const struct alb_addr *addr, alb_time until)
{
    switch (alb_dad_await(addr, until)) {
    case ALB_DAD_UNDER_WAY:
        return "cannot be used yet: it is still being checked for duplicates; is the link of its interface up?";
    case ALB_DAD_FAILED:
        return "cannot be used: another host has it, says its check for duplicates";
    case ALB_DAD_OVER:
        break;
    }
    return NULL;
}

// For an address that is not named itself: true if it can be used, else it is noted that it is left out.
static bool check_found(struct alb_device_options *options, const struct alb_addr *addr, alb_time until)
{
    char text[ALB_ADDR_TEXT_MAX];
    const char *trouble = dad_trouble(addr, until);
    if (!alb_addr_is_ipv4(addr) && !has_ipv6_sockets())
        trouble = "cannot be used: sockets of AF_INET6 are refused here; a sandbox must allow them, or --net "
                  "(ALBEDO_NET) name addresses of IPv4 alone";
    if (trouble)
        leave_out(options, "%s is left out: it %s", alb_addr_format(addr, text), trouble);
    return trouble == NULL;
}

static int add_interface(struct alb_device_options *options, const char *name, char *error, size_t error_size)
{
    struct alb_addr addresses[ALB_DEVICE_ADDRESSES_MAX];
    uint32_t count, usable = 0;
    alb_time until = alb_clock_now() + DAD_NS_MAX;
    int result = alb_address_of_interface(name, addresses, ALB_COUNT(addresses), &count);
    if (result) {
        alb_address_explain(result, error, error_size);
        return result;
    }
    if (count == 0) {
        snprintf(error, error_size, "ALBEDO_NET: \"%.64s\" %s", name, trouble_with(name));
        return EINVAL;
    }
    if (count > ALB_COUNT(addresses))
        leave_out(options, "%.64s has %u addresses, of which the last %u are left out: name those to be used", name,
                  count, count - (uint32_t)ALB_COUNT(addresses));
    for (uint32_t i = 0; i < ALB_MIN(count, (uint32_t)ALB_COUNT(addresses)) && !result; i++) {
        if (!check_found(options, &addresses[i], until))
            continue;
        usable++;
        result = add_address(options, &addresses[i], error, error_size);
    }
    if (usable > 0)
        return result;
    snprintf(error, error_size, "ALBEDO_NET: \"%.64s\": %s", name, options->left_out);
    return EINVAL;
}

static int add_item(struct alb_device_options *options, const char *item, char *error, size_t error_size)
{
    struct alb_addr addr;
    if (!alb_addr_parse(item, &addr))
        return add_interface(options, item, error, error_size);
    static const struct alb_addr any_ipv6 = {{0}};
    const struct alb_addr any_ipv4 = alb_addr_from_ipv4((const uint8_t[]){0, 0, 0, 0});
    bool is_link_local = addr.bytes[0] == 0xfe && (addr.bytes[1] & 0xc0) == 0x80;
    if (is_link_local || alb_addr_equals(&addr, &any_ipv4) || alb_addr_equals(&addr, &any_ipv6)) {
        snprintf(error, error_size, "ALBEDO_NET: %s cannot be used: %s", item,
                 is_link_local ? LOCAL_TO_LINK : "name the addresses one by one");
        return EINVAL;
    }
    const char *trouble = dad_trouble(&addr, alb_clock_now() + DAD_NS_MAX);
    if (trouble) {
        snprintf(error, error_size, "ALBEDO_NET: %s %s", item, trouble);
        return EINVAL;
    }
    return add_address(options, &addr, error, error_size);
}

static int parse_net(struct alb_device_options *options, const char *text, char *error, size_t error_size)
{
    char list[1024];
    if (strlen(text) >= sizeof(list)) {
        snprintf(error, error_size, "ALBEDO_NET: longer than %zu bytes", sizeof(list) - 1);
        return EINVAL;
    }
    strcpy(list, text);
    char *rest = list, *item;
    int result = 0;
    while (!result && (item = strsep(&rest, ",")))
        result = *item ? add_item(options, item, error, error_size) : 0;
    if (!result && options->address_count == 0) {
        snprintf(error, error_size, "ALBEDO_NET: no address in \"%.64s\"", text);
        result = EINVAL;
    }
    return result;
}

// Loopback: nothing listens beyond it until asked. A host may have one of the two, or none.
static int take_loopback(struct alb_device_options *options, char *error, size_t error_size)
{
    const struct alb_addr loopback[] = {alb_addr_from_ipv4((const uint8_t[]){127, 0, 0, 1}), {.bytes = {[15] = 1}}};
    for (size_t i = 0; i < ALB_COUNT(loopback); i++) {
        struct alb_address_info info;
        int result = alb_address_find(&loopback[i], &info);
        if (result && result != EADDRNOTAVAIL) {
            alb_address_explain(result, error, error_size);
            return result;
        }
        if (!result && check_found(options, &loopback[i], 0))
            options->addresses[options->address_count++] = loopback[i];
    }
    return 0;
}

static int parse_faults(struct alb_device_options *options, char *error, size_t error_size)
{
    const char *faults = getenv("ALBEDO_FAULTS"), *seed = getenv("ALBEDO_SEED");
    char why[ALB_FAULTS_ERROR_MAX];
    if (faults && !alb_faults_parse(faults, &options->faults, why, sizeof(why))) {
        snprintf(error, error_size, "ALBEDO_FAULTS: %s", why);
        return EINVAL;
    }
    options->fault_seed = 1;
    if (seed && *seed && !alb_text_parse_u64(seed, 0, UINT64_MAX, &options->fault_seed, why, sizeof(why))) {
        snprintf(error, error_size, "ALBEDO_SEED: %s", why);
        return EINVAL;
    }
    return 0;
}

static int parse_path(const char *name, char path[4096], char *error, size_t error_size)
{
    const char *value = getenv(name);
    path[0] = 0;
    if (!value)
        return 0;
    if (strlen(value) >= 4096) {
        snprintf(error, error_size, "%s: longer than 4095 bytes", name);
        return EINVAL;
    }
    strcpy(path, value);
    return 0;
}

static int parse_paths(struct alb_device_options *options, char *error, size_t error_size)
{
    const char *paths = getenv("ALBEDO_PATHS");
    char why[ALB_TEXT_ERROR_MAX];
    uint64_t count = 0;
    if (paths && *paths && !alb_text_parse_u64(paths, 1, ALB_PATH_NUMBERS, &count, why, sizeof(why))) {
        snprintf(error, error_size, "ALBEDO_PATHS: %s", why);
        return EINVAL;
    }
    struct rlimit descriptors;
    if (count > 0 && getrlimit(RLIMIT_NOFILE, &descriptors) == 0 && count >= descriptors.rlim_cur) {
        snprintf(error, error_size, "ALBEDO_PATHS: each path takes a descriptor, and there may be %llu (ulimit -n)",
                 (unsigned long long)descriptors.rlim_cur);
        return EINVAL;
    }
    options->path_max = (uint32_t)count;
    return 0;
}

// Says what there is to choose from.
static int refuse_policy(const char *variable, enum alb_policy policy, const char *value, char *error,
                         size_t error_size)
{
    char choices[128] = "";
    const char *name;
    for (uint32_t i = 0; (name = alb_engine_policy_name("csa", policy, i)); i++) {
        size_t length = strlen(choices);
        snprintf(choices + length, sizeof(choices) - length, "%s%s", i ? ", " : "", name);
    }
    snprintf(error, error_size, "%s: \"%.64s\" is none of %s", variable, value, choices);
    return EINVAL;
}

// Says what parameters there are, and what they can be.
static int refuse_parameters(const char *variable, enum alb_policy policy, const char *name, const char *value,
                             char *error, size_t error_size)
{
    char choices[PARAMETERS_MAX] = "no parameters that can be set";
    const char *parameter, *bounds;
    size_t length = 0;
    for (uint32_t i = 0; (parameter = alb_engine_policy_parameter("csa", policy, name, i, &bounds)); i++) {
        snprintf(choices + length, sizeof(choices) - length, "%s%s=%s", i ? ", " : "", parameter, bounds);
        length = strlen(choices);
    }
    snprintf(error, error_size, "%s: \"%.64s\": %s has %s%s", variable, value, name, choices,
             length > 0 ? "; each once, times and rates with a unit" : "");
    return EINVAL;
}

static int parse_policy(const char *variable, enum alb_policy policy, struct alb_device_options *options, char *error,
                        size_t error_size)
{
    const char *value = getenv(variable), *name;
    if (!value || !*value)
        return 0;
    if (strlen(value) >= ALB_DEVICE_POLICY_MAX) {
        snprintf(error, error_size, "%s: longer than %d bytes", variable, ALB_DEVICE_POLICY_MAX - 1);
        return EINVAL;
    }
    strcpy(options->policies[policy], value);
    if (alb_engine_policy_is_valid("csa", policy, value))
        return 0;
    size_t length = strcspn(value, ":");
    for (uint32_t i = 0; (name = alb_engine_policy_name("csa", policy, i)); i++) {
        if (strlen(name) != length || memcmp(name, value, length) != 0)
            continue;
        return refuse_parameters(variable, policy, name, value, error, error_size);
    }
    return refuse_policy(variable, policy, value, error, error_size);
}

static int parse_policies(struct alb_device_options *options, char *error, size_t error_size)
{
    static const char *const variables[ALB_POLICIES] = {
        [ALB_POLICY_LOSS] = "ALBEDO_LOSS",
        [ALB_POLICY_CONGESTION] = "ALBEDO_CONGESTION",
        [ALB_POLICY_PATH] = "ALBEDO_PATH",
        [ALB_POLICY_CREDIT] = "ALBEDO_CREDIT",
    };
    int result = 0;
    for (unsigned i = 0; i < ALB_POLICIES && !result; i++)
        result = parse_policy(variables[i], i, options, error, error_size);
    return result;
}

// "visible" and "reflected" are one: of a message that is no transaction the target can say no more than that it holds
// these bytes, and that they can be read.
int alb_device_level_from_environment(uint8_t *level, char *error, size_t error_size)
{
    static const struct {
        const char *name;
        enum alb_level level;
    } levels[] = {
        {"delivered", ALB_LEVEL_DELIVERED},
        {"visible", ALB_LEVEL_VISIBLE},
        {"reflected", ALB_LEVEL_VISIBLE},
    };
    const char *value = getenv("ALBEDO_COMPLETIONS");
    *level = ALB_LEVEL_DELIVERED;
    if (!value || !*value)
        return 0;
    for (size_t i = 0; i < ALB_COUNT(levels); i++) {
        if (strcmp(value, levels[i].name) == 0) {
            *level = (uint8_t)levels[i].level;
            return 0;
        }
    }
    snprintf(error, error_size, "ALBEDO_COMPLETIONS: \"%.64s\" is none of delivered, visible, reflected", value);
    return EINVAL;
}

// One file would hold what was written last alone. What is no file takes all of it, one behind the other.
static int check_files(const struct alb_device_options *options, char *error, size_t error_size)
{
    const struct {
        const char *variable, *path;
    } files[] = {
        {"ALBEDO_PCAP", options->pcap_path},
        {"ALBEDO_TRACE", options->trace_path},
        {"ALBEDO_STATS", options->stats_path},
    };
    for (size_t i = 1; i < ALB_COUNT(files); i++)
        for (size_t k = 0; k < i; k++) {
            struct stat status;
            if (!*files[i].path || strcmp(files[i].path, files[k].path) != 0 ||
                (stat(files[i].path, &status) == 0 && !S_ISREG(status.st_mode)))
                continue;
            snprintf(error, error_size, "%s: \"%.200s\" is the file of %s, too", files[i].variable, files[i].path,
                     files[k].variable);
            return EINVAL;
        }
    return 0;
}

int alb_device_options_from_environment(struct alb_device_options *options, char *error, size_t error_size)
{
    struct alb_device_options *parsed = calloc(1, sizeof(*parsed));
    if (!parsed)
        return ENOMEM;
    const char *net = getenv("ALBEDO_NET");
    int result = 0;
    if (net && *net)
        result = parse_net(parsed, net, error, error_size);
    else
        result = take_loopback(parsed, error, error_size);
    if (!result)
        result = parse_faults(parsed, error, error_size);
    if (!result)
        result = parse_path("ALBEDO_PCAP", parsed->pcap_path, error, error_size);
    if (!result)
        result = parse_path("ALBEDO_TRACE", parsed->trace_path, error, error_size);
    if (!result)
        result = parse_path("ALBEDO_STATS", parsed->stats_path, error, error_size);
    if (!result)
        result = check_files(parsed, error, error_size);
    if (!result)
        result = parse_paths(parsed, error, error_size);
    if (!result)
        result = parse_policies(parsed, error, error_size);
    if (!result)
        result = alb_device_level_from_environment(&parsed->completions, error, error_size);
    if (!result)
        result = alb_directory_check(error, error_size);
    if (!result)
        *options = *parsed;
    free(parsed);
    return result;
}
