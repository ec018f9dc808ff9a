// SPDX-License-Identifier: BSD-2-Clause
// albedo-info(1): devices, addresses, limits, versions. Everything is gathered into one JSON object, which is then
// printed as it is or as text, so that both say the same.
#include "tools/command.h"

#include "base/addr.h"
#include "base/text.h"
#include "device/device.h"
#include "engine/engine.h"
#include "engine/transaction.h"
#include "tools/door.h"
#include "tools/environment.h"
#include "tools/host.h"
#include "tools/libraries.h"

#include <errno.h>
#include <getopt.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print_usage(FILE *to)
{
    fputs("Usage: albedo info [OPTIONS]\n"
          "Shows devices, addresses, limits and versions, as programs under `albedo run` get them.\n\n"
          "Options:\n"
          "  -n, --net LIST  addresses or interfaces, as in `albedo run`\n"
          "  -s, --state     show how much memory a device keeps per peer and per queue pair\n"
          "  -j, --json      print JSON\n"
          "  -h, --help      show this help\n",
          to);
}

static json_t *addresses_of(const struct door_device *device)
{
    json_t *addresses = json_array();
    for (uint32_t i = 0; i < device->gid_count; i++) {
        struct alb_addr addr;
        char text[ALB_ADDR_TEXT_MAX];
        memcpy(addr.bytes, device->gids[i].raw, sizeof(addr.bytes));
        json_array_append_new(addresses,
                              json_pack("{s:i, s:s}", "gid_index", (int)i, "address", alb_addr_format(&addr, text)));
    }
    return addresses;
}

// Its engine's configuration. options must outlive config.
static int configuration_of(const char *name, struct alb_device_options *options, struct alb_engine_config *config,
                            char *error, size_t error_size)
{
    int failed = alb_device_options_from_environment(options, error, error_size);
    alb_engine_config_default(config);
    if (failed == 0)
        failed = alb_device_configure(name, options, config);
    if (failed == 0 && !alb_engine_config_apply(config))
        failed = EINVAL;
    return failed;
}

static json_t *policies_of(const struct alb_device_options *options, const struct alb_engine_config *config)
{
    bool is_csa = strcmp(config->transport, "csa") == 0;
    const char *level = options->completions == ALB_LEVEL_DELIVERED ? "delivered" : getenv("ALBEDO_COMPLETIONS");
    json_t *policies = json_pack("{s:s, s:s, s:s, s:s, s:s, s:i}", "transport", config->transport, "loss", config->loss,
                                 "congestion", config->congestion, "path", config->path, "credit", config->credit,
                                 "paths", is_csa ? (int)config->path_max : 1);
    if (is_csa)
        json_object_set_new(policies, "completions", json_string(level)); // two names are one level
    return policies;
}

static json_t *state_of(const struct alb_engine_config *config)
{
    struct alb_engine_state_sizes sizes = {0};
    alb_engine_state_sizes(config, &sizes);
    return json_pack("{s:i, s:i, s:i, s:i}", "association_idle_bytes", (int)sizes.association_idle_bytes,
                     "association_resting_bytes", (int)sizes.association_resting_bytes, "association_active_bytes",
                     (int)sizes.association_active_bytes, "queue_pair_bytes", (int)sizes.qp_bytes);
}

static json_t *limits_of(const struct door_device *device, const struct alb_engine_config *config)
{
    const struct ibv_device_attr *a = &device->attributes;
    const struct {
        const char *name;
        uint64_t value;
    } limits[] = {
        {"queue_pairs", (uint64_t)a->max_qp},
        {"work_requests_per_queue", (uint64_t)a->max_qp_wr},
        {"scatter_gather_entries", (uint64_t)a->max_sge},
        {"inline_bytes", config->inline_max_bytes},
        {"completion_queues", (uint64_t)a->max_cq},
        {"completions_per_queue", (uint64_t)a->max_cqe},
        {"shared_receive_queues", (uint64_t)a->max_srq},
        {"shared_receive_work_requests", (uint64_t)a->max_srq_wr},
        {"protection_domains", (uint64_t)a->max_pd},
        {"memory_regions", (uint64_t)a->max_mr},
        {"memory_windows", (uint64_t)a->max_mw},
        {"memory_region_bytes", a->max_mr_size},
        {"address_handles", (uint64_t)a->max_ah},
        {"reads_and_atomics_per_queue_pair", (uint64_t)a->max_qp_rd_atom},
        {"message_bytes", device->max_message_bytes},
        {"path_mtu_bytes", device->active_mtu_bytes},
        {"peers", config->peer_max},
        {"window_start_bytes", config->window_start_bytes},
        {"window_max_bytes", config->window_max_bytes},
    };
    json_t *object = json_object();
    for (size_t i = 0; i < ALB_COUNT(limits); i++)
        json_object_set_new(object, limits[i].name,
                            json_integer((json_int_t)ALB_MIN(limits[i].value, (uint64_t)INT64_MAX)));
    return object;
}

static json_t *gather_host(void)
{
    struct host_sockets sockets;
    host_sockets_probe(&sockets);
    return json_pack("{s:I, s:I, s:I, s:I, s:b, s:b}", "receive_buffer_default_bytes",
                     (json_int_t)sockets.receive_default_bytes, "receive_buffer_max_bytes",
                     (json_int_t)sockets.receive_max_bytes, "send_buffer_default_bytes",
                     (json_int_t)sockets.send_default_bytes, "send_buffer_max_bytes",
                     (json_int_t)sockets.send_max_bytes, "gso", sockets.has_gso, "gro", sockets.has_gro);
}

// Everything about one device, or NULL and an error.
static json_t *gather_device(const struct door *door, uint32_t index, bool with_state, char *error, size_t error_size)
{
    static struct alb_device_options options;
    struct alb_engine_config config;
    struct door_device device;
    if (!door_device_query(door, index, &device, error, error_size) ||
        configuration_of(device.name, &options, &config, error, error_size) != 0)
        return NULL;
    json_t *gathered = json_pack("{s:s, s:b, s:o, s:o, s:o}", "name", device.name, "active", device.is_active,
                                 "addresses", addresses_of(&device), "policies", policies_of(&options, &config),
                                 "limits", limits_of(&device, &config));
    if (with_state)
        json_object_set_new(gathered, "state", state_of(&config));
    return gathered;
}

static json_t *gather_devices(const struct door *door, bool with_state, char *error, size_t error_size)
{
    json_t *devices = json_array();
    for (uint32_t i = 0; i < door_device_count(door); i++) {
        json_t *device = gather_device(door, i, with_state, error, error_size);
        if (device == NULL) {
            json_decref(devices);
            return NULL;
        }
        json_array_append_new(devices, device);
    }
    return devices;
}

// A place may have any name, and JSON is UTF-8.
static json_t *name_of(const char *path)
{
    char name[PATH_MAX];
    snprintf(name, sizeof(name), "%s", path);
    for (char *at = name; *at; at += ALB_MAX(alb_text_character(at), (size_t)1))
        if (alb_text_character(at) == 0)
            *at = '?';
    return json_string(name);
}

static json_t *gather(const char *directory, bool with_state, char *error, size_t error_size)
{
    struct door *door = door_open(directory, error, error_size);
    if (door == NULL)
        return NULL;
    json_t *devices = gather_devices(door, with_state, error, error_size);
    json_t *info = NULL;
    if (devices != NULL) {
        json_t *private = json_array();
        uint32_t position = 0;
        for (const char *name; (name = door_private_interface(door, &position)) != NULL;)
            json_array_append_new(private, json_string(name));
        info = json_pack("{s:s, s:o, s:{s:s, s:s, s:o}, s:{s:s, s:s}, s:o, s:o}", "version", ALBEDO_VERSION,
                         "libraries", name_of(directory), "verbs", "library", LIBRARIES_DOOR, "interface",
                         door_interface(door), "private_interfaces", private, "rdma_cm", "library", LIBRARIES_CM_DOOR,
                         "interface", door_cm_interface(door), "devices", devices, "host", gather_host());
    }
    door_close(door);
    return info;
}

static void print_members(const json_t *object, const char *indent)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)object, name, value)
    {
        if (json_is_integer(value))
            printf("%s%-34s %" JSON_INTEGER_FORMAT "\n", indent, name, json_integer_value(value));
        else if (json_is_boolean(value))
            printf("%s%-34s %s\n", indent, name, json_is_true(value) ? "yes" : "no");
        else if (json_is_string(value))
            printf("%s%-34s %s\n", indent, name, json_string_value(value));
    }
}

static void print_text(const json_t *info)
{
    const json_t *verbs = json_object_get(info, "verbs");
    const json_t *cm = json_object_get(info, "rdma_cm");
    const json_t *device, *address, *private;
    size_t i, j;
    printf("albedo     %s\n", json_string_value(json_object_get(info, "version")));
    printf("libraries  %s\n", json_string_value(json_object_get(info, "libraries")));
    printf("verbs      %s, %s", json_string_value(json_object_get(verbs, "library")),
           json_string_value(json_object_get(verbs, "interface")));
    json_array_foreach(json_object_get(verbs, "private_interfaces"), i, private)
        printf(", %s", json_string_value(private));
    printf("\nrdma_cm    %s, %s\n", json_string_value(json_object_get(cm, "library")),
           json_string_value(json_object_get(cm, "interface")));
    json_array_foreach(json_object_get(info, "devices"), i, device)
    {
        printf("\ndevice %s (%s)\n", json_string_value(json_object_get(device, "name")),
               json_is_true(json_object_get(device, "active")) ? "active" : "down");
        json_array_foreach(json_object_get(device, "addresses"), j, address)
            printf("  GID %-3d %s\n", (int)json_integer_value(json_object_get(address, "gid_index")),
                   json_string_value(json_object_get(address, "address")));
        puts("  policies");
        print_members(json_object_get(device, "policies"), "    ");
        if (json_object_get(device, "state") != NULL) {
            puts("  state");
            print_members(json_object_get(device, "state"), "    ");
        }
        puts("  limits");
        print_members(json_object_get(device, "limits"), "    ");
    }
    puts("\nhost");
    print_members(json_object_get(info, "host"), "  ");
}

struct info_options {
    bool as_json, with_state, is_done;
};

// COMMAND_OK, or the status to end with; is_done: end with COMMAND_OK.
static int take_options(int argc, char **argv, struct info_options *taken)
{
    static const struct option options[] = {
        {"net", required_argument, NULL, 'n'},
        {"state", no_argument, NULL, 's'},
        {"json", no_argument, NULL, 'j'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    int option, status;
    while ((option = getopt_long(argc, argv, "n:sjh", options, NULL)) != -1) {
        switch (option) {
        case 'n':
            status = environment_take("info", "net", optarg);
            if (status != COMMAND_OK)
                return status;
            break;
        case 's':
            taken->with_state = true;
            break;
        case 'j':
            taken->as_json = true;
            break;
        case 'h':
            print_usage(stdout);
            taken->is_done = true;
            return COMMAND_OK;
        default:
            fputs("Try `albedo info --help`.\n", stderr);
            return COMMAND_USAGE;
        }
    }
    if (optind != argc)
        return command_error(COMMAND_USAGE, "info", "\"%s\": takes options only", argv[optind]);
    return COMMAND_OK;
}

// Devices are opened to be asked, and would empty the files that programs are to write or have written.
static void leave_files_alone(void)
{
    unsetenv("ALBEDO_PCAP");
    unsetenv("ALBEDO_TRACE");
    unsetenv("ALBEDO_STATS");
}

int command_info(int argc, char **argv)
{
    struct info_options options = {0};
    char directory[PATH_MAX], error[PATH_MAX + 256];
    int status = take_options(argc, argv, &options);
    if (status != COMMAND_OK || options.is_done)
        return status;
    status = environment_check("info");
    leave_files_alone();
    if (status == COMMAND_OK)
        status = libraries_find("info", directory);
    if (status != COMMAND_OK)
        return status;
    json_t *info = gather(directory, options.with_state, error, sizeof(error));
    if (info == NULL)
        return command_error(COMMAND_FAILED, "info", "%s", error);
    if (options.as_json) {
        json_dumpf(info, stdout, JSON_INDENT(2));
        putchar('\n');
    } else {
        print_text(info);
    }
    json_decref(info);
    return COMMAND_OK;
}
