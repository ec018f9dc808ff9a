// SPDX-License-Identifier: BSD-2-Clause
#include "device/tests/own_directory.h"

#include "base/tests/test.h"
#include "device/directory_file.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

char own_directory[64];

int own_directory_setup(void **state)
{
    strcpy(own_directory, "/tmp/albedo-test-XXXXXX");
    assert_non_null(mkdtemp(own_directory));
    setenv("ALBEDO_DIRECTORY", own_directory, 1);
    return 0;
}

int own_directory_teardown(void **state)
{
    char folder[ALB_DIRECTORY_FOLDER_MAX];
    rmdir(alb_directory_folder(geteuid(), folder));
    return rmdir(own_directory);
}
