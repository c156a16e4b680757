# Tests. Each tests/{unit,kernels,exact,regress}/test_*.c is one program and one ctest entry of the same name, with the folder as
# its label; what they share lies in tests/support/*.c and tests/unit/support_*.c.
set(testdata "${CMAKE_BINARY_DIR}/testdata")
file(MAKE_DIRECTORY "${testdata}")

# Test data that the build unpacks.
set(qwen "${CMAKE_SOURCE_DIR}/tests/data/qwen3-tokenizer")
if(EXISTS "${qwen}/tokenizer.json.xz")
    add_custom_command(OUTPUT "${testdata}/qwen3-tokenizer/tokenizer.json"
        COMMAND ${CMAKE_COMMAND} -E make_directory "${testdata}/qwen3-tokenizer"
        COMMAND xz -dc "${qwen}/tokenizer.json.xz" > "${testdata}/qwen3-tokenizer/tokenizer.json"
        COMMAND ${CMAKE_COMMAND} -E copy "${qwen}/tokenizer_config.json" "${testdata}/qwen3-tokenizer/"
        DEPENDS "${qwen}/tokenizer.json.xz" "${qwen}/tokenizer_config.json" VERBATIM)
    add_custom_target(testdata_tokenizer ALL DEPENDS "${testdata}/qwen3-tokenizer/tokenizer.json")
endif()

# Test data and the Python environment that the first test makes. Whatever reads them requires the fixture.
add_test(NAME testdata COMMAND "${CMAKE_SOURCE_DIR}/tools/make_testdata" "${OUTRIDER_VENV}" "${testdata}")
set_tests_properties(testdata PROPERTIES FIXTURES_SETUP testdata TIMEOUT 600 LABELS data)

file(GLOB support_sources CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/tests/support/*.c" "${CMAKE_SOURCE_DIR}/tests/unit/support_*.c")
foreach(part IN LISTS OUTRIDER_ALL_PARTS)
    if(NOT OUTRIDER_COMPLETE AND NOT part IN_LIST OUTRIDER_PARTS)
        list(FILTER support_sources EXCLUDE REGEX "/support_${part}[^/]*$")
    endif()
endforeach()
add_library(test_settings INTERFACE)
target_compile_definitions(test_settings INTERFACE SOURCE_DIR="${CMAKE_SOURCE_DIR}" BINARY_DIR="${testdata}")
target_include_directories(test_settings INTERFACE "${CMAKE_SOURCE_DIR}/tests" "${CMAKE_SOURCE_DIR}/tests/support"
                           "${CMAKE_SOURCE_DIR}/tests/unit")
if(support_sources)
    add_library(test_support STATIC ${support_sources})
    target_link_libraries(test_support PUBLIC test_settings outrider_static PkgConfig::CMOCKA)
else()
    add_library(test_support INTERFACE)
    target_link_libraries(test_support INTERFACE test_settings outrider_static PkgConfig::CMOCKA)
endif()

# SIMDe (Debian: libsimde-dev) stands for instruction sets that the processor lacks; without it test_avx512_emulated is left out.
find_path(SIMDE_INCLUDE_DIR simde/x86/avx512.h)

foreach(kind unit kernels exact regress)
    file(GLOB test_sources CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/tests/${kind}/test_*.c")
    foreach(source IN LISTS test_sources)
        get_filename_component(name "${source}" NAME_WE)
        # test_<folder>_... of a folder that is not built is left out, and so is all that needs the whole library.
        if(kind STREQUAL "unit")
            string(REGEX REPLACE "^test_([a-z0-9]+).*$" "\\1" part "${name}")
        else()
            set(part "${kind}")
        endif()
        if(NOT OUTRIDER_COMPLETE AND NOT part IN_LIST OUTRIDER_PARTS)
            continue()
        endif()
        if(name STREQUAL "test_avx512_emulated" AND NOT SIMDE_INCLUDE_DIR)
            continue()
        endif()
        if(TARGET ${name})
            message(FATAL_ERROR "two tests are named ${name}")
        endif()
        add_executable(${name} ${source})
        target_link_libraries(${name} PRIVATE test_support)
        set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/tests")
        add_test(NAME ${name} COMMAND ${name} WORKING_DIRECTORY "${CMAKE_SOURCE_DIR}")
        set_tests_properties(${name} PROPERTIES LABELS "${kind}" TIMEOUT 900)
        if(NOT part STREQUAL "base" AND NOT part STREQUAL "kernels")
            set_tests_properties(${name} PROPERTIES FIXTURES_REQUIRED testdata)
        endif()
    endforeach()
endforeach()

# The AVX-512 kernels once more, with their intrinsics in plain C. A copy of the file, because the file itself has the flags of its set.
# The contract's known values alone, for targets whose processor is emulated (make arm).
if(TARGET test_toy)
    add_test(NAME test_toy_known COMMAND test_toy --known)
    set_tests_properties(test_toy_known PROPERTIES FIXTURES_REQUIRED testdata LABELS known TIMEOUT 600)
endif()

# SIMDe lets signed sums wrap: its code is exempt from the sanitizer, not ours.
if(TARGET test_avx512_emulated)
    configure_file("${CMAKE_SOURCE_DIR}/src/kernels/x86/avx512_matrix.c" "${CMAKE_BINARY_DIR}/avx512_emulated.c" COPYONLY)
    target_sources(test_avx512_emulated PRIVATE "${CMAKE_BINARY_DIR}/avx512_emulated.c")
    set_source_files_properties("${CMAKE_BINARY_DIR}/avx512_emulated.c" PROPERTIES COMPILE_OPTIONS
        "-O1;-fwrapv;-fno-sanitize=undefined;-Wno-psabi;-DOUTRIDER_EMULATE_AVX512;-Dkernels_avx512=kernels_avx512_emulated;-include;${CMAKE_SOURCE_DIR}/tests/support/emulate_avx512.h")
    target_include_directories(test_avx512_emulated PRIVATE "${SIMDE_INCLUDE_DIR}")
endif()

# Corpora of the fuzz targets, replayed without a fuzzer.
file(GLOB fuzz_sources CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/tests/fuzz/fuzz_*.c")
if(fuzz_sources AND OUTRIDER_COMPLETE)
    add_library(fuzz_replay STATIC "${CMAKE_SOURCE_DIR}/tools/fuzz_replay.c")
    target_link_libraries(fuzz_replay PUBLIC outrider_settings)
    foreach(source IN LISTS fuzz_sources)
        get_filename_component(name "${source}" NAME_WE)
        add_executable(${name}_replay ${source})
        target_link_libraries(${name}_replay PRIVATE fuzz_replay test_settings outrider_static)
        set_target_properties(${name}_replay PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/tests")
        add_test(NAME ${name}_replay COMMAND ${name}_replay "${CMAKE_SOURCE_DIR}/tests/fuzz/corpus/${name}"
                 WORKING_DIRECTORY "${CMAKE_SOURCE_DIR}")
        set_tests_properties(${name}_replay PROPERTIES LABELS fuzz TIMEOUT 300)
    endforeach()
endif()

# tests/text/<name>_tool.c: programs that the Python tests talk to, at OUTRIDER_<NAME>_TOOL.
set(tool_paths "")
file(GLOB tool_sources CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/tests/text/*_tool.c")
if(OUTRIDER_COMPLETE)
    foreach(source IN LISTS tool_sources)
        get_filename_component(name "${source}" NAME_WE)
        add_executable(${name} "${source}")
        target_link_libraries(${name} PRIVATE outrider_static)
        string(TOUPPER "OUTRIDER_${name}=" variable)
        list(APPEND tool_paths "${variable}${CMAKE_BINARY_DIR}/${name}")
    endforeach()
endif()

# The example of the public header, as C11 and (where the target's C++ compiler is at hand) as C++, against the shared library and
# nothing else.
if(EXISTS "${CMAKE_SOURCE_DIR}/tests/e2e/example.c" AND OUTRIDER_COMPLETE)
    set(examples example_c)
    add_executable(example_c "${CMAKE_SOURCE_DIR}/tests/e2e/example.c")
    if(NOT CMAKE_CROSSCOMPILING)
        enable_language(CXX)
        configure_file("${CMAKE_SOURCE_DIR}/tests/e2e/example.c" "${CMAKE_BINARY_DIR}/example_cxx.cc" COPYONLY)
        add_executable(example_cxx "${CMAKE_BINARY_DIR}/example_cxx.cc")
        set_target_properties(example_cxx PROPERTIES CXX_STANDARD 17 CXX_EXTENSIONS OFF)
        list(APPEND examples example_cxx)
    endif()
    foreach(name IN LISTS examples)
        target_compile_options(${name} PRIVATE -Wall -Wextra -Werror)
        target_link_options(${name} PRIVATE ${outrider_link_flags})
        target_link_libraries(${name} PRIVATE outrider_shared)
        set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/tests")
        add_test(NAME ${name} COMMAND ${name} WORKING_DIRECTORY "${CMAKE_SOURCE_DIR}")
        set_tests_properties(${name} PROPERTIES LABELS e2e TIMEOUT 600)
    endforeach()
endif()

if(CMAKE_CROSSCOMPILING)
    return()
endif()

file(GLOB_RECURSE python_tests CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/tests/test_*.py")
if(python_tests AND OUTRIDER_COMPLETE)
    add_test(NAME pytest COMMAND "${OUTRIDER_VENV}/bin/python" -m pytest -q -p no:cacheprovider "${CMAKE_SOURCE_DIR}/tests"
             WORKING_DIRECTORY "${CMAKE_SOURCE_DIR}")
    set_tests_properties(pytest PROPERTIES LABELS python TIMEOUT 1800 FIXTURES_REQUIRED testdata ENVIRONMENT
        "OUTRIDER_BIN=${CMAKE_BINARY_DIR}/outrider;${tool_paths};OUTRIDER_QWEN_TOKENIZER=${testdata}/qwen3-tokenizer;OUTRIDER_SOURCE=${CMAKE_SOURCE_DIR};OUTRIDER_TESTDATA=${testdata};PYTHONDONTWRITEBYTECODE=1")
endif()

if(NOT OUTRIDER_SANITIZE)
    add_test(NAME style COMMAND python3 "${CMAKE_SOURCE_DIR}/tools/check_layers.py" "${CMAKE_SOURCE_DIR}"
             --library $<TARGET_FILE:outrider_shared>)
    set_tests_properties(style PROPERTIES LABELS style ENVIRONMENT "PYTHONDONTWRITEBYTECODE=1")
    if(OUTRIDER_COMPLETE)
        add_test(NAME install COMMAND "${CMAKE_SOURCE_DIR}/tools/check_install" "${CMAKE_BINARY_DIR}"
                 "${CMAKE_C_COMPILER}")
        set_tests_properties(install PROPERTIES LABELS install TIMEOUT 300)
    endif()
endif()
