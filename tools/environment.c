// SPDX-License-Identifier: BSD-2-Clause
// Options as environment variables.
#include "tools/environment.h"

#include "base/log.h"
#include "device/address.h"
#include "device/device.h"
#include "device/directory.h"
#include "tools/command.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
    const char *option;
    const char *variable;
    bool is_given; // by the option
} carried[] = {
    {"net", "ALBEDO_NET", false},
    {"device", "ALBEDO_DEVICES", false},
    {"faults", "ALBEDO_FAULTS", false},
    {"seed", "ALBEDO_SEED", false},
    {"log", "ALBEDO_LOG", false},
    {"pcap", "ALBEDO_PCAP", false},
    {"trace", "ALBEDO_TRACE", false},
    {"stats", "ALBEDO_STATS", false},
    {"paths", "ALBEDO_PATHS", false},
    {"loss", "ALBEDO_LOSS", false},
    {"congestion", "ALBEDO_CONGESTION", false},
    {"path", "ALBEDO_PATH", false},
    {"credit", "ALBEDO_CREDIT", false},
    {"completions", "ALBEDO_COMPLETIONS", false},
};

int environment_set(const char *option, const char *value)
{
    for (size_t i = 0; i < ALB_COUNT(carried); i++) {
        if (strcmp(option, carried[i].option) != 0)
            continue;
        carried[i].is_given = true;
        return setenv(carried[i].variable, value, 1) == 0 ? 0 : errno;
    }
    return EINVAL;
}

int environment_take(const char *command, const char *option, const char *value)
{
    if (*value == '\0' && strcmp(option, "faults") != 0)
        return command_error(COMMAND_USAGE, command, "--%s: its value is empty", option);
    int error = environment_set(option, value);
    return error == 0 ? COMMAND_OK : command_error(COMMAND_FAILED, command, "%s", strerror(error));
}

// The device's complaints begin with the variable and a colon. The user gave an option, not a variable.
static int complain(const char *command, const char *error)
{
    size_t length = strcspn(error, ":");
    for (size_t i = 0; i < ALB_COUNT(carried); i++) {
        if (carried[i].is_given && strlen(carried[i].variable) == length &&
            strncmp(error, carried[i].variable, length) == 0)
            return command_error(COMMAND_USAGE, command, "--%s%s", carried[i].option, error + length);
    }
    return command_error(COMMAND_USAGE, command, "%s", error);
}

// An address may belong to another host, or to none: the device would find out when the program opens it.
static int check_addresses(const char *command, const struct alb_device_options *options)
{
    for (uint32_t i = 0; i < options->address_count; i++) {
        char text[ALB_ADDR_TEXT_MAX], error[256];
        struct alb_address_info info;
        int trouble = alb_address_find(&options->addresses[i], &info);
        if (trouble == EADDRNOTAVAIL)
            snprintf(error, sizeof(error),
                     "ALBEDO_NET: %s is not an address of this host; `ip address` shows those it has",
                     alb_addr_format(&options->addresses[i], text));
        else if (trouble)
            alb_address_explain(trouble, error, sizeof(error));
        if (trouble)
            return complain(command, error);
    }
    return COMMAND_OK;
}

int environment_check_directory(const char *command)
{
    char error[ALB_DEVICE_ERROR_MAX];
    return alb_directory_check(error, sizeof(error)) == 0 ? COMMAND_OK
                                                          : command_error(COMMAND_USAGE, command, "%s", error);
}

int environment_check(const char *command)
{
    static struct alb_device_options options;
    struct alb_device_selection selection;
    enum alb_log_level level;
    char error[ALB_DEVICE_ERROR_MAX] = "out of memory";
    const char *log = getenv("ALBEDO_LOG");
    if (log && *log && !alb_log_level_parse(log, &level)) {
        snprintf(error, sizeof(error), "ALBEDO_LOG: \"%.64s\" is none of error, warning, info, debug", log);
        return complain(command, error);
    }
    if (alb_device_selection_from_environment(&selection, error, sizeof(error)) != 0 ||
        alb_device_options_from_environment(&options, error, sizeof(error)) != 0)
        return complain(command, error);
    return check_addresses(command, &options);
}
