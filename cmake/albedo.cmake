# Compiler settings and the three functions every folder's CMakeLists.txt is written with.

set(CMAKE_C_STANDARD 17)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS ON) # recvmmsg, GSO and the like are GNU/Linux interfaces
set(CMAKE_POSITION_INDEPENDENT_CODE ON) # every static library also ends up inside libibverbs.so.1
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)

if(NOT CMAKE_BUILD_TYPE)
    set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "build type" FORCE)
endif()
# Of a type that it does not know CMake makes a build without optimisation. None is Debian's, whose flags come from elsewhere.
string(TOUPPER "${CMAKE_BUILD_TYPE}" type)
if(NOT type MATCHES "^(DEBUG|RELEASE|RELWITHDEBINFO|MINSIZEREL|NONE)$" AND "${CMAKE_C_FLAGS_${type}}" STREQUAL "")
    message(FATAL_ERROR "CMAKE_BUILD_TYPE is Debug, Release, RelWithDebInfo, MinSizeRel or None, not \"${CMAKE_BUILD_TYPE}\"")
endif()
set(CMAKE_C_FLAGS_RELWITHDEBINFO "-O2 -g") # no -DNDEBUG: assertions stay in release builds (DESIGN: our bug - assert)

option(ALBEDO_WERROR "treat warnings as errors" OFF)
set(ALBEDO_SANITIZE "" CACHE STRING "sanitizers to build with, e.g. address,undefined or thread")

add_compile_options(-Wall -Wextra -Wshadow -Wpointer-arith -Wstrict-prototypes -Wmissing-prototypes -Wvla
                    -Wno-unused-parameter -fno-strict-aliasing)
# Structs of some hundred bytes are cleared by plain stores: GCC's choice for generic processors, "rep stos", takes tens
# of nanoseconds to begin (docs/LESSONS.md, 47).
include(CheckCCompilerFlag)
set(ALBEDO_MEMSET -mmemset-strategy=unrolled_loop:256:noalign,libcall:-1:noalign)
check_c_compiler_flag(${ALBEDO_MEMSET} ALBEDO_HAS_MEMSET_STRATEGY)
if(ALBEDO_HAS_MEMSET_STRATEGY)
    add_compile_options(${ALBEDO_MEMSET})
endif()
# Assertions name their file, by its place in the sources and not on the machine that builds.
add_compile_options(-fmacro-prefix-map=${CMAKE_SOURCE_DIR}/=)
if(ALBEDO_WERROR)
    add_compile_options(-Werror)
endif()
if(ALBEDO_SANITIZE)
    include(CheckCSourceCompiles)
    set(CMAKE_REQUIRED_FLAGS -fsanitize=${ALBEDO_SANITIZE})
    unset(ALBEDO_HAS_SANITIZE CACHE) # the value may be another one by now
    check_c_source_compiles("int main(void) { return 0; }" ALBEDO_HAS_SANITIZE)
    unset(CMAKE_REQUIRED_FLAGS)
    if(NOT ALBEDO_HAS_SANITIZE)
        message(FATAL_ERROR "${CMAKE_C_COMPILER} takes no -fsanitize=${ALBEDO_SANITIZE}, or its libraries are missing")
    elseif(NOT CMAKE_C_COMPILER_ID STREQUAL GNU AND NOT ALBEDO_FUZZ)
        # clang's are linked to programs alone, and a library of ours may leave nothing undefined.
        message(FATAL_ERROR "ALBEDO_SANITIZE takes GCC, or ALBEDO_FUZZ, which builds programs alone, not ${CMAKE_C_COMPILER_ID}")
    endif()
    # What a sanitizer reports has files and lines: -g1 is enough for that, and a quarter of the time to compile is for the rest.
    add_compile_options(-fsanitize=${ALBEDO_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=undefined -g1)
    add_link_options(-fsanitize=${ALBEDO_SANITIZE})
endif()

# libibverbs.so.1 is optimised as a whole: a message passes through some two hundred small functions of forty files
# (docs/LESSONS.md, 93). The objects hold ordinary code, too, which everything else is linked from, as fast as before.
option(ALBEDO_WHOLE "optimise libibverbs.so.1 across its files (GCC)" ON)
if(CMAKE_C_FLAGS MATCHES "-flto" OR CMAKE_INTERPROCEDURAL_OPTIMIZATION)
    set(ALBEDO_HAS_WHOLE OFF) # all is, as whoever builds wants it
elseif(ALBEDO_WHOLE AND CMAKE_C_COMPILER_ID STREQUAL GNU AND NOT ALBEDO_SANITIZE AND NOT CMAKE_BUILD_TYPE STREQUAL Debug)
    include(CheckIPOSupported)
    check_ipo_supported(RESULT ALBEDO_HAS_WHOLE OUTPUT ALBEDO_WHOLE_WHY LANGUAGES C)
endif()
if(ALBEDO_HAS_WHOLE)
    set(ALBEDO_WHOLE_COMPILE -flto=auto -ffat-lto-objects)
    add_link_options($<IF:$<BOOL:$<TARGET_PROPERTY:ALBEDO_WHOLE>>,-flto=auto,-fno-lto>)
endif()

# `make profiled` builds twice in the same folder: what counts how often each branch is taken, and, when programs have run on that, what is
# optimised by those counts. Functions that were not run are compiled as without them.
set(ALBEDO_PROFILE "" CACHE STRING "count: what runs leaves counts in the folder profile of the build; use: optimise by them (GCC)")
set_property(CACHE ALBEDO_PROFILE PROPERTY STRINGS "" count use)
if(ALBEDO_PROFILE AND NOT CMAKE_C_COMPILER_ID STREQUAL GNU)
    message(FATAL_ERROR "ALBEDO_PROFILE takes GCC, not ${CMAKE_C_COMPILER_ID}")
elseif(ALBEDO_PROFILE STREQUAL count)
    set(ALBEDO_PROFILE_COMPILE -fprofile-generate=${CMAKE_BINARY_DIR}/profile -fprofile-update=atomic)
    add_link_options(-fprofile-generate)
elseif(ALBEDO_PROFILE STREQUAL use)
    # What simulates is optimised across its files, too, which alone gives it little, but with the counts does: the code
    # of a packet then fits the first cache (docs/LESSONS.md, 100).
    set(ALBEDO_WHOLE_SIMULATOR ON)
    set(ALBEDO_PROFILE_COMPILE -fprofile-use=${CMAKE_BINARY_DIR}/profile -fprofile-partial-training -Wno-missing-profile
                               -Wno-error=coverage-mismatch)
elseif(ALBEDO_PROFILE)
    message(FATAL_ERROR "ALBEDO_PROFILE is \"count\", \"use\" or empty, not \"${ALBEDO_PROFILE}\"")
endif()

# What is missing is said at once, all of it, and not by the compiler in the middle of a build.
set(ALBEDO_MISSING "")
function(alb_need header library package)
    string(MAKE_C_IDENTIFIER ALBEDO_${library} variable)
    find_path(${variable}_INCLUDE ${header})
    find_library(${variable}_LIBRARY ${library})
    mark_as_advanced(${variable}_INCLUDE ${variable}_LIBRARY)
    if(NOT ${variable}_INCLUDE OR NOT ${variable}_LIBRARY)
        set(ALBEDO_MISSING ${ALBEDO_MISSING} ${package} PARENT_SCOPE)
    endif()
endfunction()
alb_need(infiniband/verbs.h ibverbs libibverbs-dev)
alb_need(rdma/rdma_cma.h rdmacm librdmacm-dev)
alb_need(isa-l/crc.h isal libisal-dev)
if(BUILD_TESTING)
    alb_need(cmocka.h cmocka libcmocka-dev)
    alb_need(xxhash.h xxhash libxxhash-dev)
endif()
if(ALBEDO_MISSING)
    list(JOIN ALBEDO_MISSING " " packages)
    message(FATAL_ERROR "missing: what these Debian packages hold (scripts/setup.sh build): ${packages}")
endif()

# alb_library(base SOURCES ... [LINK ...]): the static library alb_<name> of this folder. LINK names what it may use: the
# folders below it, and system libraries. Includes are written "folder/file.h", from the top of the tree.
function(alb_library name)
    cmake_parse_arguments(arg "" "" "SOURCES;LINK" ${ARGN})
    add_library(alb_${name} STATIC ${arg_SOURCES})
    target_compile_options(alb_${name} PRIVATE ${ALBEDO_WHOLE_COMPILE} ${ALBEDO_PROFILE_COMPILE})
    target_include_directories(alb_${name} PUBLIC ${CMAKE_SOURCE_DIR} ${CMAKE_SOURCE_DIR}/include)
    target_link_libraries(alb_${name} PUBLIC ${arg_LINK})
endfunction()

# alb_group(device_tests test_device_ring): a target that stands for several.
function(alb_group group target)
    if(NOT TARGET ${group})
        add_custom_target(${group})
    endif()
    add_dependencies(${group} ${target})
endfunction()

# What a sanitizer adds takes the compiler long to optimise, half of a build; how fast the tests themselves are is no matter.
function(alb_compile_sooner target)
    if(ALBEDO_SANITIZE)
        target_compile_options(${target} PRIVATE -O1)
    endif()
endfunction()

# alb_test_support(engine pair ...): tests/pair.c and others of this folder, compiled once; each test of the folder links those that it calls.
function(alb_test_support folder)
    if(NOT BUILD_TESTING)
        return()
    endif()
    string(REPLACE "/" "_" flat ${folder})
    list(TRANSFORM ARGN PREPEND tests/)
    list(TRANSFORM ARGN APPEND .c)
    add_library(test_${flat}_support STATIC ${ARGN})
    target_include_directories(test_${flat}_support PRIVATE ${CMAKE_SOURCE_DIR} ${CMAKE_SOURCE_DIR}/include)
    alb_compile_sooner(test_${flat}_support)
endfunction()

# alb_test(base ring [SOURCES ...] [LINK ...]): tests/ring_test.c of this folder as the cmocka program and ctest case
# base/ring, one of the target base_tests. It links its own folder's library only (and what that links), so that an upward call is a link error.
function(alb_test folder name)
    cmake_parse_arguments(arg "" "" "SOURCES;LINK" ${ARGN})
    if(NOT BUILD_TESTING)
        return()
    endif()
    string(REPLACE "/" "_" flat ${folder})
    set(target test_${flat}_${name})
    add_executable(${target} tests/${name}_test.c ${arg_SOURCES})
    if(TARGET test_${flat}_support)
        target_link_libraries(${target} PRIVATE test_${flat}_support)
    endif()
    target_link_libraries(${target} PRIVATE alb_${flat} ${arg_LINK} cmocka)
    set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/test)
    alb_compile_sooner(${target})
    alb_group(${flat}_tests ${target})
    add_test(NAME ${folder}/${name} COMMAND ${target} WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
endfunction()

# alb_program(albedo SOURCES ... [LINK ...]): an installed program in build/bin.
function(alb_program name)
    cmake_parse_arguments(arg "" "" "SOURCES;LINK" ${ARGN})
    add_executable(${name} ${arg_SOURCES})
    target_link_libraries(${name} PRIVATE ${arg_LINK})
    install(TARGETS ${name} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endfunction()
